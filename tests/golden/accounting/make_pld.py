"""Write ``pld.json``: epsilon of Gaussian answers by ``dp-accounting`` 0.6.0's PLD accountant.

Run it where that library is installed (it pins attrs<24, so not beside this project):
``pip install dp-accounting==0.6.0 && python tests/golden/accounting/make_pld.py``. Noise per
query is the paper's (3.4); epsilon is at delta (k + 1) 1e-6.
"""

import json
import math
from pathlib import Path

from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon_gaussian
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

DELTA = 1e-6


def cell(epsilon: float, queries: int, accounts: int) -> dict[str, float]:
    """Return one cell of the grid."""
    part = epsilon / math.sqrt(2 * queries * math.log(1 / DELTA))
    sigma = math.sqrt(2 * math.log(1.25 * queries / DELTA)) / part
    event = SelfComposedDpEvent(GaussianDpEvent(sigma), accounts * queries)
    delta = (accounts + 1) * DELTA
    # The grid is scaled to the loss: the default of 1e-4 is as wide as the smallest epsilon.
    step = min(1e-4, 1e-3 * math.sqrt(accounts * queries) / sigma)
    return {
        "epsilon": epsilon,
        "queries": queries,
        "accounts": accounts,
        "sigma": sigma,
        "delta": delta,
        "pld": PLDAccountant(value_discretization_interval=step).compose(event).get_epsilon(delta),
        "closed": get_epsilon_gaussian(sigma / math.sqrt(accounts * queries), delta),
        "rdp": RdpAccountant().compose(event).get_epsilon(delta),
    }


if __name__ == "__main__":
    grid = [
        cell(epsilon, queries, accounts)
        for epsilon in (0.1, 0.5, 1.0, 2.0)
        for queries in (100, 1000, 10_000)
        for accounts in (1, 4, 16, 64, 256, 1024)
    ]
    Path(__file__).with_name("pld.json").write_text(json.dumps(grid, indent=1) + "\n")
