"""``ragwitness tenants``: tenants, documents, accounts and keys of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.config import Configurable
from ragwitness.cli.serve import DATABASE

if TYPE_CHECKING:
    from ragwitness.service.store import Store

__all__ = ["app"]

app = typer.Typer(
    help="Tenants of the service: documents, accounts, keys, budgets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Database = Annotated[str | None, typer.Option(help=DATABASE, show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Tenant = Annotated[str, typer.Argument(help="Name of the tenant.")]
Account = Annotated[str, typer.Argument(help="Name of the account.")]


@app.command("create", cls=Configurable)
def create(
    name: Annotated[str, typer.Argument(help="Name of the new tenant.")],
    epsilon: Annotated[float, typer.Option(help="Of one account per window.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of one account per window.")] = 1e-8,
    queries: Annotated[int, typer.Option(help="Of one account per window.")] = 1000,
    accounts: Annotated[int, typer.Option(help="Accounts that may collude, k_max.")] = 16,
    joint_delta: Annotated[float, typer.Option(help="Of the whole index per window.")] = 1e-6,
    joint_epsilon: Annotated[
        float | None,
        typer.Option(help="Of the whole index; without it what k_max accounts may come to."),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="Noise (1 is a perfect match); without it the least that suffices."),
    ] = None,
    payer_queries: Annotated[
        int | None, typer.Option(help="Of all accounts of one payer per window.")
    ] = None,
    top: Annotated[int, typer.Option(help="Documents per answer.")] = 4,
    capacity: Annotated[int, typer.Option(help="Slots for documents; public.")] = 1024,
    neighbours: Annotated[str, typer.Option(help="replace or add-remove.")] = "replace",
    window_days: Annotated[float, typer.Option(help="Length of a window.")] = 30.0,
    scale: Annotated[
        int | None,
        typer.Option(help="Norm of integer vectors, e.g. 128: answers can be proved (commit)."),
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="minilm, hf:NAME, URL#MODEL or hashing:DIMENSION.")
    ] = "minilm",
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Make a tenant; its policy never changes. Makes the database file as well."""
    from ragwitness.service.policy import Claim
    from ragwitness.service.tenants import create_tenant

    claim = Claim(
        epsilon=epsilon,
        delta=delta,
        queries=queries,
        accounts=accounts,
        joint_delta=joint_delta,
        joint_epsilon=joint_epsilon,
        sigma=sigma,
        payer_queries=payer_queries,
        top=top,
        capacity=capacity,
        relation=neighbours,  # type: ignore[arg-type]  # checked there
        window=_seconds(window_days),
        embedder=embedder,
        scale=scale,
    )
    with _opened(database, create=True) as store:
        policy = create_tenant(store, name, claim)
    settled = {
        "tenant": name,
        **asdict(policy.claim),
        "mu_budget": policy.budget,
        "mechanism": policy.mechanism.digest,
    }
    _print(settled, as_json=as_json)


@app.command("list", cls=Configurable)
def list_(database: Database = None, as_json: Json = False) -> None:
    """List tenants with documents, accounts and promises."""
    from ragwitness.service.overview import list_tenants

    with _opened(database) as store:
        rows = [asdict(row) for row in list_tenants(store)]
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        typer.echo(
            f"{row['name']}: {row['documents']} of {row['capacity']} slots,"
            f" {row['accounts']} accounts; epsilon {row['account_epsilon']:g} per account,"
            f" {row['joint_epsilon']:.4g} for the index at delta {row['joint_delta']:g}"
        )
    if not rows:
        typer.echo("There is no tenant yet.")


@app.command("policy", cls=Configurable)
def policy_(
    tenant: Tenant,
    window: Annotated[
        str | None, typer.Option(help="Name of the audit window; TENANT-NUMBER without it.")
    ] = None,
    accounts_most: Annotated[
        int | None, typer.Option(help="Accounts that can be admitted; those there are, or k_max.")
    ] = None,
    database: Database = None,
) -> None:
    """Print a tenant's promise as a policy for setup and commit."""
    from ragwitness.service.committing import policy_text

    with _opened(database) as store:
        typer.echo(policy_text(store, tenant, window, accounts_most), nl=False)


@app.command("add-documents", cls=Configurable)
def add_documents(
    tenant: Tenant,
    corpus: Annotated[str, typer.Argument(help="JSONL, CSV, text or a folder.")],
    split: Annotated[
        bool, typer.Option("--split", help="Cut long documents; each part is a slot.")
    ] = False,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    end_window: Annotated[
        bool,
        typer.Option("--end-window", help="Although a window was committed to without them."),
    ] = False,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Add documents to a tenant's index. All of CORPUS or nothing."""
    from ragwitness.cli.common import read_documents
    from ragwitness.service import tenants
    from ragwitness.service.committing import check_unbound

    documents = read_documents(corpus, text_field)
    with _opened(database) as store:
        if not end_window:
            check_unbound(store, tenant)
        added = tenants.add_documents(store, tenant, documents, split=split)
    _print({"tenant": tenant, "added": added}, as_json=as_json)


@app.command("add-account", cls=Configurable)
def add_account(
    tenant: Tenant,
    account: Account,
    payer: Annotated[
        str | None, typer.Option(help="Who pays for it; without it the account itself.")
    ] = None,
    database: Database = None,
    as_json: Json = False,
) -> None:
    """Admit an account and print its key, this once."""
    from ragwitness.service import tenants

    with _opened(database) as store:
        key = tenants.add_account(store, tenant, account, payer)
    row = {"tenant": tenant, "account": account, "payer": payer or account, "key": key.text}
    _print(row, as_json=as_json)


@app.command("rotate-key", cls=Configurable)
def rotate_key(
    tenant: Tenant, account: Account, database: Database = None, as_json: Json = False
) -> None:
    """Print a new key for an account; the old one ends. Its meters go on."""
    from ragwitness.service import tenants

    with _opened(database) as store:
        key = tenants.rotate_key(store, tenant, account)
    _print({"tenant": tenant, "account": account, "key": key.text}, as_json=as_json)


@app.command("revoke", cls=Configurable)
def revoke(
    tenant: Tenant, account: Account, database: Database = None, as_json: Json = False
) -> None:
    """End an account's access; what it has spent stays spent."""
    from ragwitness.service import tenants

    with _opened(database) as store:
        tenants.revoke(store, tenant, account)
    _print({"tenant": tenant, "account": account, "revoked": True}, as_json=as_json)


@app.command("budget", cls=Configurable)
def budget(tenant: Tenant, database: Database = None, as_json: Json = False) -> None:
    """Show what a tenant's index, payers and accounts have spent."""
    from ragwitness.service.overview import budget_of

    with _opened(database) as store:
        found = budget_of(store, tenant)
    if as_json:
        _print_json(asdict(found))
        return
    days = found.seconds_left / 86_400
    typer.echo(f"{tenant}: window {found.window}, {days:.2f} days left")
    typer.echo(
        f"index: {found.queries} queries, epsilon {found.epsilon:.4g} of {found.joint_epsilon:.4g}"
        f" at delta {found.delta:g} (mu {found.mu:.4g} of {found.budget:.4g})"
    )
    typer.echo(f"{found.all_windows} windows together: epsilon {found.all_epsilon:.4g}")
    for row in found.accounts:
        typer.echo(
            f"  {row.name}: {row.queries} of {found.account_limit}; payer {row.payer}:"
            f" {row.payer_queries} of {found.payer_limit}{' (revoked)' if row.revoked else ''}"
        )


@contextmanager
def _opened(database: str | None, *, create: bool = False) -> Iterator[Store]:
    from ragwitness.service.store import open_store

    store = open_store(database, create=create)
    try:
        yield store
    finally:
        store.close()


def _seconds(days: float) -> int:
    import math

    from ragwitness.errors import InputError

    if not (math.isfinite(days) and days > 0):
        raise InputError(f"A window lasts a number of days above 0, not {days:g}.")
    return round(days * 86_400)


def _print(values: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        _print_json(values)
        return
    width = max(map(len, values))
    for name, value in values.items():
        if value is not None:
            typer.echo(f"{name.replace('_', ' '):<{width}}  {_shown(name, value)}")
    if "key" in values:
        typer.echo("The key is shown this once; the database keeps a hash.")


def _shown(name: str, value: object) -> str:
    if name == "window" and isinstance(value, int):
        return f"{value / 86_400:g} days"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, allow_nan=False))
