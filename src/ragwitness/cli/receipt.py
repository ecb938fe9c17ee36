"""``ragwitness receipt``: what an account keeps, and what the close says of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.config import Configurable
from ragwitness.cli.signing import Json, Key, Output, Trusted, print_values
from ragwitness.errors import VerificationError

if TYPE_CHECKING:
    from ragwitness.crypto.notes import Policy as Signers

__all__ = ["app"]

app = typer.Typer(
    help="Receipts: check one; show an account's count at the close.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ACCOUNT = b'"version":"ragwitness/account/v1"'


@app.command("check", cls=Configurable)
def check(
    file: Annotated[Path, typer.Argument(help="A receipt, or a proof of an account's count.")],
    trust: Trusted,
    query: Annotated[
        str | None, typer.Option(help="The query as you sent it; - reads standard input.")
    ] = None,
    nonce: Annotated[str | None, typer.Option(help="The nonce that you sent.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint that you named: size and root.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="Your name as an account.")] = None,
    as_json: Json = False,
) -> None:
    """Check a receipt offline. Signed, in the log, and of this query, vector and answer.

    Give all that you know: the noise hangs on query, nonce, checkpoint and account, and a provider
    that changed one of them could have chosen it. Exits with 3 and the name of the check that
    fails.
    """
    from ragwitness.attest.folder import read_bytes
    from ragwitness.attest.receipts import MOST_RECEIPT
    from ragwitness.cli.signing import signers

    data = read_bytes(file, MOST_RECEIPT)
    who = signers(trust)
    known = {"account": account, "nonce": nonce, "checkpoint": checkpoint}
    found = _account(data, who) if _ACCOUNT in data else _query(data, who, query)
    for field, value in known.items():
        if value is not None and found.get(field, value) != value:
            raise VerificationError(
                f"receipt.{field}", f"The record is of another {field} than yours."
            )
    print_values({"holds": True, **found}, as_json=as_json)


@app.command("account", cls=Configurable)
def account(
    window: Annotated[Path, typer.Argument(help="The window's folder, closed.")],
    tenant: Annotated[str, typer.Option(help="Whose index.")],
    name: Annotated[str, typer.Option("--account", help="Whose count, be it 0.")],
    key: Key,
    output: Output,
) -> None:
    """Prove how many records a closed window has of an account."""
    from ragwitness.attest.closing import prove_account
    from ragwitness.attest.window import Window
    from ragwitness.cli.signing import new_file
    from ragwitness.crypto.keys import read_key

    held = Window.load(window, [read_key(key)])
    new_file(output, prove_account(held, tenant, name).encode())


def _query(data: bytes, who: Signers, query: str | None) -> dict[str, object]:
    from ragwitness.attest.receipts import Receipt, check_receipt

    receipt = Receipt.parse(data)
    record, proof, signed = check_receipt(receipt, who)
    _compare(receipt.opened.query, query)
    return {
        "window": record.window,
        "tenant": record.tenant,
        "account": record.account,
        "sequence": int(record.sequence),
        "number": int(record.number),
        "nonce": record.nonce,
        "checkpoint": record.checkpoint,
        "ids": list(receipt.opened.ids),
        "index": proof.index,
        "log_size": signed.checkpoint.size,
        "witnesses": [name for name, _ in signed.times],
    }


def _compare(digest: bytes, query: str | None) -> None:
    """Compare the receipt's query with the account's."""
    import sys
    from hashlib import sha256

    if query is not None:
        text = sys.stdin.read() if query == "-" else query
        if sha256(text.encode()).digest() != digest:
            raise VerificationError("receipt.query", "The receipt is of another query than this.")


def _account(data: bytes, who: Signers) -> dict[str, object]:
    from ragwitness.attest.closing import AccountProof, check_account
    from ragwitness.crypto.transcript import decode

    proof = AccountProof.parse(data)
    entry = check_account(proof, who)
    return {
        "window": decode(proof.entry).window,
        "tenant": proof.tenant,
        "account": proof.account,
        "records": entry.count if entry else 0,
        "last": entry.last.hex() if entry else "",
    }
