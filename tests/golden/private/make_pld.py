"""Write ``pld.json``: delta of votes with discrete Gaussian noise by ``dp-accounting`` 0.6.0.

Run it where that library is installed (it pins attrs<24, so not beside this project):
``pip install dp-accounting==0.6.0 && python tests/golden/private/make_pld.py``. The variances
have an exact root and losses, (1 - 2k) / 2v, on the library's grid: it rounds none of them.
"""

import json
from pathlib import Path

from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism

STEP = 1 / 128


def rows() -> list[dict[str, float]]:
    found = []
    for variance in (0.25, 1.0, 4.0, 16.0, 64.0):
        once = from_discrete_gaussian_mechanism(
            variance**0.5, 1, value_discretization_interval=STEP, use_connect_dots=False
        )
        for votes in (1, 3, 10):
            curve = once.self_compose(votes) if votes > 1 else once
            for epsilon in (0.1, 1.0, 4.0):
                delta = float(curve.get_delta_for_epsilon(epsilon))
                found.append(
                    {"variance": variance, "votes": votes, "epsilon": epsilon, "delta": delta}
                )
    return found


if __name__ == "__main__":
    path = Path(__file__).with_name("pld.json")
    path.write_text(json.dumps(rows(), indent=1) + "\n", encoding="utf-8")
