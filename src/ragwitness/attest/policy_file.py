"""A policy as its provider writes it: TOML, with the noise on the scale of cosines."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.attest.policy import Estimator, Policy
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import epsilon_at, mu_for
from ragwitness.privacy.accounting.ranges import positive, probability, whole
from ragwitness.privacy.accounting.sensitivity import Relation
from ragwitness.privacy.mechanism import Mechanism, provable_mechanism
from ragwitness.privacy.odometer import Terms

__all__ = ["EXAMPLE", "read_policy"]

EXAMPLE = """\
# A window's policy. Nothing in it can change once the window is open.
window = "2026-W47"
relation = "replace"      # what may differ: a document replaced (or "add-remove")
queries = 25              # most queries of one account
accounts_most = 20        # most accounts, over all tenants
epsilon = 1.0             # promised to one account for its queries, at delta
delta = 1e-8
k_max = 4                 # declared cap on a coalition
joint_delta = 1e-6        # of the joint guarantee; must be above k_max x delta
nonces_required = true    # refuse queries without a nonce of the client

[estimator]               # of the coalition's size
name = "pairs"            # the paper's; or "cores", which chains of chance do not join
threshold = 0.95          # least cosine of two queries that joins their accounts

[tenants.clinic]
dimension = 384           # of the embedder
capacity = 1000           # slots, public; empty ones are searched like the others
top = 4                   # slots per answer
scale = 128               # largest norm of the integer vectors; above sigma x scale^2 = 16,384
                          # noise comes from no table: slower, about 15 microseconds a slot
# sigma = 60.0            # noise; 1 is a perfect match. Without it the least that keeps epsilon.
"""

_MOST_BYTES = 1 << 20
_STEPS = 20
_WHOLES = ("queries", "accounts_most", "k_max")
_REALS = ("epsilon", "delta", "joint_delta")
_TENANT = ("dimension", "capacity", "top", "scale")


def read_policy(path: Path) -> Policy:
    """Return the policy of a TOML file; ``ragwitness commit --example-policy`` prints one.

    Raises:
        InputError: The file cannot be read, a field is missing, unknown or outside its range, or
            a given sigma does not keep the promise to an account.
    """
    value = _toml(path)
    _expect(value, {"window", "relation", "tenants", *_WHOLES, *_REALS}, "the policy")
    tenants = value["tenants"]
    if not isinstance(tenants, dict):
        raise InputError(f"{path}: tenants is no table.", "Write [tenants.NAME] above its fields.")
    numbers = {name: whole(name, value[name]) for name in _WHOLES}
    reals = {name: float(positive(name, value[name])) for name in _REALS}
    relation = value["relation"]
    delta = probability("delta", reals["delta"])
    needs = _Promise(reals["epsilon"], delta, numbers["queries"], relation)
    made = Policy(
        window=str(value["window"]),
        tenants={name: _mechanism(name, one, needs) for name, one in tenants.items()},
        relation=relation,
        estimator=_estimator(value.get("estimator", {})),
        nonces_required=bool(value.get("nonces_required", True)),
        **numbers,
        **reals,  # type: ignore[arg-type]
    )
    _check_joint(made)
    return made


def _check_joint(policy: Policy) -> None:
    """Refuse a policy whose audit could not pass."""
    from ragwitness.attest.verifying.numbers import MOST_EPSILON, exact_epsilon

    answers = policy.k_max * policy.queries
    for name, mechanism in policy.tenants.items():
        mu = Terms.of(mechanism, 1.0, policy.relation).worst_mu(answers)
        found = exact_epsilon(mechanism, mu, policy.joint_delta, answers)
        if found is None or found > MOST_EPSILON:
            raise InputError(
                f"{policy.k_max} accounts of {name} together would know too much: no joint epsilon"
                f" up to {MOST_EPSILON:g} holds at joint_delta {policy.joint_delta:g}, so no audit"
                " could pass.",
                "Lower epsilon, queries or k_max.",
            )


@dataclass(frozen=True, slots=True)
class _Promise:
    """What one account is promised for all its queries."""

    epsilon: float
    delta: float
    queries: int
    relation: Relation

    def worst(self, mechanism: Mechanism) -> float:
        """Return mu of all its queries, whatever they are."""
        return Terms.of(mechanism, 1.0, self.relation).worst_mu(self.queries)

    def rest(self, mechanism: Mechanism) -> float:
        """Return the delta that the table of the noise leaves.

        Raises:
            InputError: It leaves none.
        """
        rest = self.delta - mechanism.extra_delta(self.epsilon, self.queries)
        if rest <= 0:
            raise InputError(
                f"At epsilon {self.epsilon:g} the table of the noise alone fails more often than"
                f" delta = {self.delta:g}.",
                "Promise a smaller epsilon (50 or less), or raise the scale for exact noise.",
            )
        return rest


def _mechanism(name: str, value: object, promise: _Promise) -> Mechanism:
    if not isinstance(value, dict):
        raise InputError(f"The tenant {name!r} is no table.", "Write [tenants.NAME].")
    _expect(value, set(_TENANT), f"the tenant {name}", {"sigma"})
    numbers = {field: whole(field, value[field]) for field in _TENANT}
    if "sigma" not in value:
        return _least(numbers, promise)
    made = _built(numbers, positive("sigma", value["sigma"]))
    real = epsilon_at(promise.rest(made), promise.worst(made))
    if real > promise.epsilon:
        raise InputError(
            f"With sigma {value['sigma']:g} an account of {name} has epsilon {real:.4g} after"
            f" {promise.queries} queries, more than it is promised.",
            "Raise sigma or epsilon, allow fewer queries, or leave sigma out to have it computed.",
        )
    return made


def _least(numbers: Mapping[str, int], promise: _Promise) -> Mechanism:
    """Return the mechanism with the least noise that keeps the promise."""
    reach = 2.0 if promise.relation == "replace" else 1.0
    sigma = reach * math.sqrt(promise.queries) / mu_for(promise.epsilon, promise.delta)
    for _ in range(_STEPS):  # smoothing and the table cost a little more than the ideal
        made = _built(numbers, sigma)
        rest, worst = promise.rest(made), promise.worst(made)
        if epsilon_at(rest, worst) <= promise.epsilon:
            break
        sigma *= worst / mu_for(promise.epsilon, rest) * (1 + 1e-9)
    return made


def _built(numbers: Mapping[str, int], sigma: float) -> Mechanism:
    return provable_mechanism(sigma=sigma, **numbers)


def _estimator(value: object) -> Estimator:
    if not isinstance(value, dict):
        raise InputError("The estimator is no table.", "Write [estimator] above its fields.")
    _expect(value, set(), "the estimator", {"name", "threshold"})
    default = Estimator()
    name, threshold = value.get("name", default.name), value.get("threshold", default.threshold)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise InputError(f"The estimator's threshold is no number: {threshold!r}.")
    return Estimator(str(name), float(threshold))


def _expect(
    value: Mapping[str, object], needed: set[str], what: str, extra: set[str] | None = None
) -> None:
    known = needed | (extra if extra is not None else {"estimator", "nonces_required"})
    hint = "ragwitness commit --example-policy prints a whole one."
    if missing := sorted(needed - value.keys()):
        raise InputError(f"The field {missing[0]!r} is missing in {what}.", hint)
    if unknown := sorted(value.keys() - known):
        raise InputError(f"There is no field {unknown[0]!r} in {what}.", hint)


def _toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(_MOST_BYTES).decode())
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.",
            "ragwitness commit --example-policy prints a policy to start from.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from error
