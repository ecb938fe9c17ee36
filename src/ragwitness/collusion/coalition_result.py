"""The result of ``ragwitness collusion estimate``: whether accounts of a log work together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.collusion.estimate import Estimates
from ragwitness.core.types import Shown
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Name,
    Paragraph,
    ReportDocument,
    plain_table,
    simple_report,
    table_rows,
)
from ragwitness.report.result_type import ResultType, Row, plain, restored

_WORDS = "coalition of accounts"

# ``collusion estimate``: estimates of a coalition.

_SHOWN = 6  # names in a sentence; the JSON has all
_LOOKS_FOR = {
    "pairs": "similar queries (R5)",
    "means": "similar mean queries",
    "spectral": "one shared direction",
    "communities": "shared rare buckets",
}


@dataclass(frozen=True, slots=True)
class CoalitionEstimates(Shown):
    """How many accounts of a log work together.

    Attributes:
        found: The estimates.
        k_max: Declared cap on a coalition; None without one.
    """

    found: Estimates
    k_max: int | None = None

    def dump(self) -> Row:
        """Return everything as JSON, each estimate by its name."""
        fields = asdict(self.found)
        fields["estimates"] = {row["name"]: row for row in fields["estimates"]}
        return fields | {"k_max": self.k_max}

    def report(self) -> ReportDocument:
        """Return one line per estimator, what is known of the log, and whom that names."""
        names = ("estimator", "group", "p", "p traffic", "corrected", "looks for")
        rows = (
            (
                Name(row.name),
                str(row.size),
                fmt.p_text(row.own_p),
                fmt.p_text(row.traffic_p),
                fmt.p_text(row.adjusted_p),
                _LOOKS_FOR.get(row.name, "left in 0.2.0"),
            )
            for row in self.found.estimates
        )
        against = self.found.comparison
        suspicious = against is not None and against.suspicious
        named = [Paragraph(line, "", brief=True) for line in self._named()]
        return simple_report(
            _WORDS,
            self._judged(),
            plain_table("Each estimator", names, rows, "looks for"),
            self._notes(),
            said=named,
            warnings=["The log is suspicious."] if suspicious else [],
        )

    def _judged(self) -> str:
        estimates, k_max, against = self.found, self.k_max, self.found.comparison
        if against is None:
            return (
                "Not judged: without ordinary traffic (--ordinary) an embedder's habits and"
                " questions that many users share pass for a coalition. Nobody is named."
            )
        if against.unit != "windows":
            return "Not judged: an earlier version compared it with accounts, not with windows."
        if not against.suspicious:
            return (
                "No sign of a coalition: a benign log looks as suspicious with p ="
                f" {against.p:.3g}, above {against.alpha:g}."
            )
        size = f"is estimated at {fmt.count(estimates.size)} accounts"
        if estimates.size == 1:
            size = "has no size"
        if k_max:
            size += f", {'above' if estimates.size > k_max else 'within'} the cap of {k_max}"
        return (
            f"Suspicious: at most {against.p:.1%} of benign logs look so to any estimator. The"
            f" coalition {size}."
        )

    def _named(self) -> list[str]:
        against = self.found.comparison
        if against is None or not against.suspicious:
            return []
        if against.suspects:
            names = ", ".join(
                f"{fmt.visible(suspect.account, 24)} ({suspect.p:.2g})"
                for suspect in against.suspects[:_SHOWN]
            )
            more = len(against.suspects) - _SHOWN
            rest = f" and {fmt.count(more)} more" if more > 0 else ""
            return [
                f"Named, each with the chance that an innocent account looks so: {names}{rest}."
            ]
        if against.least > against.account_alpha:
            return [
                f"No account can be named: the smallest p of an account is {against.least:.2g} with"
                f" {fmt.count(against.accounts)} ordinary accounts, above"
                f" {against.account_alpha:g}. Give more of them."
            ]
        return [f"Nobody is named: no account has p <= {against.account_alpha:g} by itself."]

    def _notes(self) -> list[str]:
        estimates, against = self.found, self.found.comparison
        lines = [
            f"{fmt.count(estimates.accounts)} accounts, {fmt.count(estimates.queries)} queries,"
            f" {estimates.dim} dimensions; queries are similar from cosine"
            f" {estimates.threshold:.3f}."
        ]
        if against is not None:
            lines.append(
                f"Compared with {against.draws} ordinary {against.unit} of as many accounts: p"
                " holds if this window is like them but for a coalition."
            )
        lines.append("An estimate bounds no leakage (ragwitness collusion bound).")
        return lines


def _load(data: Mapping[str, Any]) -> CoalitionEstimates:
    named = {**data, "estimates": list(data["estimates"].values())}
    rest = {name: data[name] for name in ("k_max",) if name in data}
    return restored(CoalitionEstimates, {"found": named, **rest}, RESULT_TYPE)


RESULT_TYPE: ResultType[CoalitionEstimates, str] = ResultType(
    name="coalition",
    words=_WORDS,
    verb="collusion estimate --json",
    dump=lambda result: dict(plain(result.dump())),
    load=_load,
    recognises=lambda data: {"estimates", "threshold"} <= data.keys(),
    report=lambda result: result.report(),
    rows=lambda result: table_rows(result.report()),
)
