"""``ragwitness service``: the service, its tenants, documents, accounts and keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.common import say_error, write_json_file
from ragwitness.cli.options import (
    Account,
    AsJson,
    Database,
    Embedder,
    Queries,
    Tenant,
)
from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.core.types import LeftOut
from ragwitness.runner.task_options import HowRead

if TYPE_CHECKING:
    from ragwitness.service.policy import TenantPolicy
    from ragwitness.service.store import Store
    from ragwitness.stats.rates import Rate


def create(
    names: Annotated[list[str], Arg()],
    mechanism: str = "codes",
    epsilon: Annotated[float | None, Opt(shown="10; with noise 1")] = None,
    delta: float = 1e-8,
    queries: Queries = 1000,
    accounts: int = 16,
    joint_delta: float = 1e-6,
    joint_epsilon: Annotated[float | None, Opt(shown="what k_max accounts may come to")] = None,
    lifetime_epsilon: Annotated[float | None, Opt(shown="12 full windows")] = None,
    payer_queries: int | None = None,
    top: int = 4,
    capacity: int = 1024,
    neighbours: str = "replace",
    window_days: float = 30.0,
    clip: Annotated[str | None, Opt(metavar="A,B", shown="none")] = None,
    texts: Annotated[bool, Opt("--texts/--ids-only")] = True,
    questions: Annotated[Path | None, PathRole.READS] = None,
    knowingly: bool = False,
    embedder: Embedder = "minilm",
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a tenant, or several with one promise.

    A policy never changes. The database file is made as well, if there is none. The scope of the
    promise and the worth of an answer are printed.

    Args:
        names: The names of the new tenants.
        mechanism: How documents are found. With codes each is placed under a public group of words
            once, at random, for life: nothing is metered. With noise every score gets noise, and
            queries are metered; all options from delta to clip, and embedder, are for noise.
        epsilon: With codes, the epsilon of a document for life; with noise, that of one account in
            a window.
        delta: The delta of one account in a window.
        accounts: The number of accounts that may collude, k_max.
        joint_delta: The delta of the whole index in a window.
        joint_epsilon: The epsilon of the whole index in a window.
        lifetime_epsilon: The epsilon of the index over all windows; with it spent, nothing is
            answered.
        payer_queries: The most queries of all accounts of one payer in a window.
        top: The number of documents in an answer.
        capacity: The number of slots for documents, which is public.
        neighbours: The compared indexes: replace (one document is another) or add-remove.
        window_days: The length of a window in days.
        clip: The bounds of the scores, e.g. 0,0.6: fewer values, less noise. They are public: do
            not take them from the documents.
        texts: Whether retrieval and chats show texts of documents, or only the numbers of their
            slots.
        questions: Public sample questions, JSONL with question and text. How often each finds its
            text is measured, and decides whether the tenant is made. With codes and 200 texts or
            more they also teach which words are asked. They must not come from the tenant's
            documents.
        knowingly: Make it although its answers are as good as chance, or although one account can
            read more than a twentieth of the index.
    """
    from ragwitness.service.policy import Claim, check_worth, make_policy
    from ragwitness.service.tenants import create_tenant, dimension_of

    metered = {
        "delta": delta,
        "queries": queries,
        "accounts": accounts,
        "joint_delta": joint_delta,
        "joint_epsilon": joint_epsilon,
        "lifetime_epsilon": lifetime_epsilon,
        "payer_queries": payer_queries,
        "relation": neighbours,
        "window": _seconds(window_days),
        "clip": None if clip is None else _bounds(clip),
        "embedder": embedder,
    }
    claim = Claim(
        mechanism=mechanism,  # type: ignore[arg-type]  # checked there
        epsilon=epsilon if epsilon is not None else 1.0 if mechanism == "noise" else 10.0,
        top=top,
        capacity=capacity,
        texts=texts,
        **metered,  # type: ignore[arg-type]
    )
    if mechanism == "codes":
        bare = asdict(Claim())
        if useless := [name for name, value in metered.items() if value != bare[name]]:
            raise InputError(
                f"With codes nothing is metered or embedded: {', '.join(useless)} would do"
                " nothing.",
                "Leave them out, or say --mechanism noise.",
            )
    recall = None
    if questions is not None:
        from ragwitness.service.sample_recall import fitted_claim, read_pairs, sample_recall

        claim, rest = fitted_claim(claim, read_pairs(questions))
        recall = sample_recall(make_policy(claim, dimension_of(claim)), rest)
    if not knowingly:
        check_worth(make_policy(claim, dimension_of(claim)), recall)
    with _opened(database, create=True) as store:
        # The claim becomes a policy; what cannot be promised is refused before a tenant exists.
        policy = create_tenant(store, names[0], claim, *names[1:])
    rows = [_settled(name, policy, recall, {*metered}) for name in names]
    if as_json:
        _print_json(rows if len(rows) > 1 else rows[0])
        return
    for row in rows:
        _print(row, as_json=False)


def _settled(
    name: str, policy: TenantPolicy, recall: Rate | None, metered: set[str]
) -> dict[str, object]:
    """Return the printed lines of a new tenant: its promise, its scope, and its worth."""
    claim, fields = policy.claim, asdict(policy.claim)
    fields["words"] = "those that are asked" if fields.pop("asked") else "the rarest"
    if policy.placement is not None:
        fields = {key: value for key, value in fields.items() if key not in {*metered, "sampler"}}
        fields["covers"] = (
            "which slots are selected, of each document with its parts and versions, for life, over"
            " all accounts: it against any other one in its slots"
        )
        fields["groups_of_words"] = policy.placement.groups
    else:
        del fields["words"]
        fields |= {"sensitivity": policy.sensitivity, "mu_budget": policy.budget}
        fields["covers"] = "which slots are selected, of one slot, in one window, by one account"
        if policy.mechanism.sampler == "exact":
            fields["slow"] = "no table holds this noise: it is drawn exactly, many times slower"
    advantage = math.tanh(claim.epsilon / 2)
    return {
        "tenant": name,
        **fields,
        "not_covered": "texts that are shown, and answers that are written from them",
        "bounds": f"the best test of a document has an advantage of {advantage:.4f} at most",
        "texts_shown": policy.texts_shown,
        "found": "not measured; --questions measures it" if recall is None else asdict(recall),
        "chance": policy.chance,
        "digest": policy.finder.digest,
    }


def list_(database: Database = None, as_json: AsJson = False) -> None:
    """List all tenants.

    Each is shown with its documents, accounts and promise.
    """
    from ragwitness.service.tenants import list_tenants

    with _opened(database) as store:
        rows = list_tenants(store)
    if as_json:
        _print_json([asdict(row) for row in rows])
        return
    # One line a tenant: its size, and its promise in words.
    for row in rows:
        claim = row.claim
        promise = f"codes, epsilon {claim.epsilon:g} of a document for life"
        if claim.mechanism == "noise":
            promise = (
                f"noise, epsilon {claim.epsilon:g} per account, {claim.joint_epsilon:.4g} for the"
                f" index at delta {claim.joint_delta:g}"
            )
        typer.echo(
            f"{row.name}: {row.documents} of {claim.capacity} slots, {row.accounts} accounts;"
            f" {promise}"
        )
    if not rows:
        typer.echo("There is no tenant yet.")


def add_documents(
    tenant: Tenant,
    corpus: Annotated[str, PathRole.DOCUMENTS, Arg()],
    split: bool = False,
    *,
    how: HowRead,
    replace: bool = False,
    skip_unusable: bool = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add documents to a tenant's index.

    All of them are added, or none: one that cannot be used refuses the whole corpus.

    Args:
        corpus: The documents: a JSONL or CSV file, a text file or a folder.
        split: Cut long documents; each part takes a slot.
        replace: Put a document, with all its parts, in the place of one with the same id. With
            codes it keeps the draw of the first text, and is found by the words of that one.
        skip_unusable: Add the others where some cannot be used, and list those.
    """
    from ragwitness.runner.task_runtime import as_documents
    from ragwitness.service.documents import add_documents as put
    from ragwitness.service.documents import changed_since_draw

    unread: list[Any] = []
    documents = as_documents(corpus, how, unread, note=say_error)
    skipped = [asdict(item) for item in unread if isinstance(item, LeftOut)]
    if skipped and not skip_unusable:
        raise InputError(
            f"{len(skipped)} of the files and rows of {corpus} cannot be used; nothing was added.",
            "Mend them, or say --skip-unusable.",
        )
    with _opened(database) as store:
        added = put(store, tenant, documents, split=split, replace=replace)
        changed = changed_since_draw(store, tenant)
    row: dict[str, object] = {"tenant": tenant, "added": added}
    if changed:  # they are found by the words of the text that they were drawn by
        row["changed_since_their_draw"] = changed
    if skipped:
        row["skipped"] = skipped if as_json else len(skipped)
    _print(row, as_json=as_json)


def remove_documents(
    tenant: Tenant,
    documents: Annotated[list[str], Arg()],
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take documents out of a tenant's index, each with all its parts.

    All of them are removed, or none. No budget comes back.

    Args:
        documents: The ids of documents.
    """
    from ragwitness.service.documents import remove_documents as take_out

    with _opened(database) as store:
        removed = take_out(store, tenant, documents)
    _print({"tenant": tenant, "removed": removed}, as_json=as_json)


def erase(
    tenant: Tenant,
    yes: bool = False,
    receipt: Annotated[Path | None, PathRole.WRITES] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Erase a tenant for good.

    Its documents, accounts, keys, meters and seeds are deleted and the database is written anew.

    Args:
        yes: Erase without asking; nothing brings it back.
        receipt: The file for a receipt of the erasure, as JSON.
    """
    from ragwitness.service.tenants import erase_tenant

    if not yes:
        typer.confirm(f"Erase {tenant} with all its documents and accounts?", abort=True)
    # The receipt is written after the erasure, from the database's counts.
    with _opened(database) as store:
        erased = erase_tenant(store, tenant)
    if receipt is not None:
        write_json_file(receipt, erased)
    if as_json:
        _print_json(erased)
        return
    rows = ", ".join(f"{count} {name}" for name, count in erased["rows"].items())
    typer.echo(f"{tenant} is erased: {rows}.")
    for line in erased["remains"]:
        typer.echo(f"What remains: {line}.")


def add_account(
    tenant: Tenant,
    accounts: Annotated[list[str], Arg()],
    payer: Annotated[str | None, Opt(shown="each account itself")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Admit accounts and print their keys.

    The keys are shown this once.

    Args:
        accounts: The names of the new accounts.
        payer: The payer of all of them.
    """
    from ragwitness.service import tenants

    with _opened(database) as store:
        keys = tenants.add_accounts(store, tenant, accounts, payer)
    # All accounts are admitted in one transaction; their keys exist here alone.
    rows = [
        {"tenant": tenant, "account": name, "payer": payer or name, "key": key}
        for name, key in zip(accounts, keys, strict=True)
    ]
    if as_json:
        _print_json(rows if len(rows) > 1 else rows[0])
        return
    for row in rows:
        _print(row, as_json=False)


def rotate_key(
    tenant: Tenant, account: Account, database: Database = None, as_json: AsJson = False
) -> None:
    """Print a new key for an account.

    The old key ends at once; what was spent stays spent.
    """
    from ragwitness.service import tenants

    with _opened(database) as store:
        key = tenants.rotate_key(store, tenant, account)
    _print({"tenant": tenant, "account": account, "key": key}, as_json=as_json)


def revoke(
    tenant: Tenant, account: Account, database: Database = None, as_json: AsJson = False
) -> None:
    """End an account's access.

    Its spending stays.
    """
    from ragwitness.service import tenants

    with _opened(database) as store:
        tenants.revoke(store, tenant, account)
    _print({"tenant": tenant, "account": account, "revoked": True}, as_json=as_json)


def budget(
    tenant: Tenant,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show what has been spent.

    It is shown for a tenant's index, its payers and its accounts.
    """
    from ragwitness.service.tenants import budget_of

    with _opened(database) as store:
        spent = budget_of(store, tenant)
    if as_json:
        _print_json(asdict(spent))
        return
    # Three meters, as the service charges them: the index, the payer, the account
    # (docs/design/service.md).
    days = spent.seconds_left / 86_400
    typer.echo(f"{tenant}: window {spent.window}, {days:.2f} days left")
    typer.echo(
        f"index: {spent.queries} queries, epsilon {spent.epsilon:.4g} of {spent.joint_epsilon:.4g}"
        f" at delta {spent.delta:g}"
    )
    typer.echo(
        f"lifetime: epsilon {spent.life_epsilon:.4g} spent or granted of"
        f" {spent.lifetime_epsilon:.4g}"
    )
    for row in spent.accounts:
        typer.echo(
            f"  {row.name}: {row.queries} of {spent.account_limit}; payer {row.payer}:"
            f" {row.payer_queries} of {spent.payer_limit}{' (revoked)' if row.revoked else ''}"
        )


def _opened(database: str | None, *, create: bool = False) -> closing[Store]:
    from ragwitness.service.store import open_store

    return closing(open_store(database, create=create))


def _seconds(days: float) -> int:
    if not (math.isfinite(days) and days > 0):
        raise InputError(f"A window lasts a number of days above 0, not {days:g}.")
    return round(days * 86_400)


def _bounds(text: str) -> tuple[float, float]:
    """Read ``A,B``.

    Raises:
        InputError: It is something else.
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"--clip {text!r} is not two numbers.", "Write e.g. --clip 0,0.6."
        ) from None
    return low, high


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
    if name == "found" and isinstance(value, dict):
        return "{value:.3f} [{low:.3f}, {high:.3f}] of {n} sample questions".format(**value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


# The service itself.


def serve(
    database: Database = None,
    port: int = 8000,
    host: str = "127.0.0.1",
    metrics: Annotated[int | None, Opt(metavar="PORT")] = None,
) -> None:
    """Serve private retrieval.

    Make tenants and keys with ragwitness service tenants.

    Args:
        port: The port; 0 takes a free one and prints it.
        host: The address to listen on.
        metrics: The port of this machine on which Prometheus reads /metrics. They show the traffic
            of all tenants, so they are not on the port of the service.
    """
    from ragwitness.cli.common import one_thread_per_answer
    from ragwitness.service.server import serve as serve_tenants

    # Answers are made side by side; each gets one thread of the linear algebra.
    one_thread_per_answer()
    serve_tenants(database, host, port, metrics)


def restored(database: Database = None, as_json: AsJson = False) -> None:
    """Say that the database is a restored copy, before it is served.

    Every window that was open, or may have been since the copy was made, counts as spent in full.
    The window under way answers nothing. A document that was placed after the copy was made is
    placed a second time when it is added again, which doubles its epsilon.
    """
    from ragwitness.service.tenants import count_as_spent

    with _opened(database) as store:
        counted = count_as_spent(store)
    if as_json:
        _print_json(counted)
        return
    placed = "placed without windows; what was placed since counts as new"
    for name, windows in counted.items():
        typer.echo(f"{name}: {f'{windows} windows count as spent in full' if windows else placed}")
