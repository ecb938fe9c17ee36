"""Coalition estimators: calibration as in section 5.5, power, and what evading each costs.

python experiments/collusion/coalition.py [--quick]

Two kinds of ordinary traffic: unrelated accounts (the paper's null), and accounts that put part
of their queries to intents that all users share. Coalitions hide by fresh jitter per query or by
one fixed jitter per account.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from texts import HERE, OUT

from ragwitness.collusion.detectors import (
    DETECTORS,
    Settings,
    effective_size,
    nearest_means,
    top_direction,
)
from ragwitness.privacy.query_log import QueryLog
from ragwitness.report.document import Axis, Line
from ragwitness.report.document import LinesPanel as Panel
from ragwitness.report.html import lines_svg
from research.coalitions import (
    Harness,
    coalition_probes,
    null_curve,
    operating_point,
    recovery,
    traffic,
    unit_rows,
    with_intents,
)
from research.detection import evasion_tax, power_of, suspicions

_SCAN = ((16, 0.15), (16, 0.2), (32, 0.1), (32, 0.06), (64, 0.06), (64, 0.04), (8, 0.2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="A tenth of the logs.")
    options = parser.parse_args()
    config = tomllib.loads((HERE / "config.toml").read_text())
    own = dict(config["coalition"])
    if options.quick:
        own |= {"ordinary": 19, "coalitions": 6}
    told = {
        "calibration": _calibration(200 if not options.quick else 20),
        "scan": _scan(100 if not options.quick else 20),
        "power": _powers(own, config["seed"]),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    Path(OUT / "coalition.json").write_text(json.dumps(told, indent=1) + "\n")
    (HERE / "coalition.svg").write_text(_figure(told["power"], max(own["sizes"])))


def _calibration(trials: int) -> dict[str, Any]:
    """The paper's grid: null, operating point, recovery of three patterns."""
    harness = Harness(trials=trials)
    points = null_curve(harness)
    tau = operating_point(points)
    print("| tau | null joined [95 %] | largest component |\n|---|---|---|")
    for point in points:
        if 0.35 <= point.threshold <= 0.70:
            rate = point.joined
            shown = f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
            print(f"| {point.threshold:.2f} | {shown} | {point.largest:.1f} |")
    print(
        f"\noperating point {tau:.2f}\n\n| pattern | m | exact | mean | sd |\n|---|---|---|---|---|"
    )
    found = [
        recovery(Harness(trials=trials // 5), pattern, size, tau)
        for pattern in ("identical", "jittered", "paraphrased")
        for size in (2, 4, 8, 16)
    ]
    for one in found:
        print(
            f"| {one.pattern} | {one.size} | {one.exact.value:.3f} | {one.mean:.2f}"
            f" | {one.spread:.2f} |"
        )
    return {
        "null": [asdict(point) for point in points],
        "operating point": tau,
        "recovery": [asdict(one) for one in found],
    }


def _scan(nulls: int) -> list[dict[str, float]]:
    """Spectral scan against the nearest pair at N = 1000, d = 384, 1 % false alarms."""
    accounts, dim, trials = 1000, 384, 20

    def rows(seed: tuple[int, ...], size: int, tau: float) -> np.ndarray:
        rng = np.random.default_rng(seed)
        means = unit_rows(rng, accounts, dim)
        if size:
            means[:size] = coalition_probes(rng, "steady", (size, 1, dim), tau)[:, 0]
        return means

    ordinary = [rows((0, at), 0, 1.0) for at in range(nulls)]
    bars = [
        sorted(measure(one) for one in ordinary)[max(0, round(0.99 * nulls) - 1)]
        for measure in (_largest, nearest_means)
    ]
    print("\n| k | tau | k tau | spectral | nearest pair | k tau read |\n|---|---|---|---|---|---|")
    told = []
    for size, tau in _SCAN:
        means = [rows((size, round(1000 * tau), at), size, tau) for at in range(trials)]
        spectral = float(np.mean([_largest(one) > bars[0] for one in means]))
        pair = float(np.mean([nearest_means(one) > bars[1] for one in means]))
        read = float(np.mean([effective_size(_largest(one), accounts, dim) for one in means]))
        told.append({"k": size, "tau": tau, "spectral": spectral, "pair": pair, "read": read})
        print(f"| {size} | {tau} | {size * tau:.2f} | {spectral:.2f} | {pair:.2f} | {read:.2f} |")
    return told


def _largest(means: np.ndarray) -> float:
    return top_direction(means)[0]


def _powers(own: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    told = []
    print("\n| traffic | hides | k | estimator | " + " | ".join(map(str, own["taus"])) + " | tax |")
    print("|---|---|---|---|" + "---|" * (len(own["taus"]) + 1))
    settings = Settings(rounds=9)
    for share, kind in ((0.0, "unrelated"), (own["faq_share"], "shared intents")):
        ordinary = {
            name: suspicions(
                name, lambda rng, s=share: _log(own, rng, s), settings, own["ordinary"], seed
            )
            for name in DETECTORS
        }
        for pattern in ("jittered", "steady"):
            for size in own["sizes"]:
                for name in DETECTORS:
                    found = []
                    for tau in own["taus"]:
                        alone = suspicions(
                            name,
                            lambda rng, s=share, p=pattern, k=size, t=tau: _log(
                                own, rng, s, (p, k, t)
                            ),
                            settings,
                            own["coalitions"],
                            seed + 1,
                        )
                        found.append((tau, power_of(ordinary[name], alone)))
                    tax = evasion_tax(found)
                    cells = " | ".join(f"{power.found.value:.2f}" for _, power in found)
                    paid = "none" if tax.accounts is None else f"{tax.accounts:.3g}x"
                    print(
                        f"| {kind} | {pattern} | {size} | {name} | {cells} | {paid} |", flush=True
                    )
                    told.append(
                        {
                            "traffic": kind,
                            "pattern": pattern,
                            "size": size,
                            "estimator": name,
                            "power": [
                                {"tau": t, "auc": asdict(p.auc), "found": asdict(p.found)}
                                for t, p in found
                            ],
                            "tax": tax.accounts,
                        }
                    )
    return told


def _figure(power: list[dict[str, Any]], size: int) -> str:
    """Power against how alike the probes are, for the largest coalition."""
    panels = []
    for kind in ("unrelated", "shared intents"):
        for pattern in ("jittered", "steady"):
            mine = [
                one
                for one in power
                if (one["traffic"], one["pattern"], one["size"]) == (kind, pattern, size)
            ]
            lines = tuple(
                Line(one["estimator"], tuple((p["tau"], p["found"]["value"]) for p in curve), at)
                for at, one in enumerate(mine)
                for curve in [one["power"]]
            )
            title = f"{kind}, {pattern}, k = {size}"
            panels.append(Panel(title, Axis("cosine of two probes"), Axis("found"), lines, 0.0))
    return lines_svg("Coalitions found at 5 % false alarms", panels)


def _log(
    own: dict[str, Any],
    rng: np.random.Generator,
    share: float,
    coalition: tuple[str, int, float] | None = None,
) -> QueryLog:
    shape = (own["accounts"], own["queries"], own["dim"])
    rows = unit_rows(rng, *shape)
    if share:
        # the service's intents are the same in every log
        faq = unit_rows(np.random.default_rng(99), own["faq_intents"], own["dim"])
        rows = with_intents(rng, rows, share, faq)
    if coalition is None:
        return traffic(rng, rows)
    pattern, size, tau = coalition
    return traffic(rng, rows, coalition_probes(rng, pattern, (size, *shape[1:]), tau))


if __name__ == "__main__":
    main()
