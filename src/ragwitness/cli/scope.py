"""``ragwitness audit --as``: can accounts reach documents that they must not?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.cli.outputs import Outputs
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.membership.task import AuditTask

_ACCOUNT = re.compile(r"([\w.-]+)=(\w+)")


def accounts_of(given: Sequence[str]) -> dict[str, str]:
    """Return the variable with the key of each account, by its name.

    Raises:
        InputError: One is not ``NAME=VARIABLE``, or a name is given twice.
    """
    from ragwitness.core.errors import InputError

    found = [_ACCOUNT.fullmatch(one) for one in given]
    accounts = {one[1]: one[2] for one in found if one}
    if len(accounts) < len(given) or {".", ".."} & {*accounts}:
        raise InputError(
            "--as takes the name of an account and the variable with its key, each name once.",
            "An example: --as alice=ALICE_KEY --as bob=BOB_KEY",
        )
    return accounts


def audit_scope(
    task: AuditTask, accounts: dict[str, str], outputs: Outputs, *, dry_run: bool
) -> None:
    """Ask about the documents as each account, and put the verdicts into one matrix.

    Raises:
        InputError: An option cannot be used.
    """
    from ragwitness.cli.common import console, run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, audited, preview_audit
    from ragwitness.core.run_files import RESULT
    from ragwitness.membership.results.audit import RESULT_TYPE
    from ragwitness.membership.results.scope import scope_of
    from ragwitness.membership.task import as_accounts
    from ragwitness.report.files import write

    screen = console()
    audits: dict[str, AuditResult] = {}
    parts = as_accounts(task, accounts, say_error)
    part, order = next(iter(parts.values()))
    named = (*sorted(accounts.items()), *part.identity(order))
    folder = run_folder(task.run, "as", str(task.target), *named)
    agree(*order.beforehand(), yes=task.yes or dry_run)
    for name, (own, asked) in parts.items():
        place = folder / name
        screen.print(f"as {name}:", markup=False)
        if dry_run:
            preview_audit(order.plan, order.method, order.config, order.proxy, place, order.budget)
            continue
        audits[name] = audited(own, asked, place)
        write("json", RESULT_TYPE, audits[name], place / RESULT)
    if not dry_run:
        found = scope_of(audits, task.alpha)
        conclude(found, outputs, store=folder)
