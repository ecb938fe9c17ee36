"""A provider's promise for a window, fixed before its first query: C_Π of the paper (§5.3).

It has two texts: canonical JSON, which is committed to, and TOML, which a provider writes, with the
noise on the scale of cosines.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, get_args

from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.hashing import canonical, parse
from ragwitness.privacy.bounds import composition_slack
from ragwitness.privacy.gaussian import epsilon_at, mu_for
from ragwitness.privacy.mechanism import Mechanism, provable_mechanism
from ragwitness.privacy.odometer import Terms, worst_epsilon
from ragwitness.privacy.ranges import Relation, positive, probability, whole

VERSION = "ragwitness/policy/v2"
_APART = "ragwitness/policy/v1"  # its estimator looks at each tenant by itself, without a span
ESTIMATORS = ("pairs", "cores")
"""Coalition estimators whose result is the same on every machine."""

MOST_BYTES = 1 << 17
"""Longest policy that is read."""

MOST_EPSILON = 60.0
"""Largest joint epsilon of a pass; tables of noise show none above it, and it promises nothing."""

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
span = 0                  # largest distance in the log of compared queries; 0: any distance

[tenants.clinic]
dimension = 384           # of the embedder
capacity = 1000           # slots, public; empty ones are searched like the others
top = 4                   # slots per answer
scale = 128               # largest norm of the integer vectors; above sigma x scale^2 = 16,384
                          # noise comes from no table: slower, 15 microseconds a slot
# sigma = 60.0            # noise; 1 is a perfect match. Without it the least that keeps epsilon.
"""
"""Output of ``ragwitness attest commit --example-policy``."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_MOST_TOML = 1 << 20
_LONGEST = 41  # of a number in it: a quotient of two numbers of 64 bits
_N = TypeVar("_N", int, float)
_STEPS = 20
_MOST_TENANTS = 128
_MOST_PLACES = 100_000  # queries: a verifier estimates the coalition over all pairs
_MOST_ACCOUNTS = 4_096
_MOST_DIMENSION = 8_192  # the odometer holds a square of it
_MOST_DELTA = 0.01
_WHOLES = ("queries", "accounts_most", "k_max")
_REALS = ("epsilon", "delta", "joint_delta")
_TENANT = ("dimension", "capacity", "top", "scale")


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimator of a coalition's size (R5, §5.5).

    Attributes:
        name: ``"pairs"``, the paper's largest component, or ``"cores"``, its innermost core, which
            chance links alone do not form.
        threshold: Least cosine of two queries that joins their accounts: from 0 to 1, with at
            most four decimals.
        span: The paper's sliding window W: the largest distance in the log of two queries that are
            compared, since the log has no clock that a verifier could check; 0 for all.
        together: Whether accounts of different tenants can be one coalition; False in policies of
            version 1, of windows that 0.2.0 opened.
    """

    STEPS: ClassVar[int] = 10_000
    """From threshold 0 to 1; with few steps, whole numbers of 64 bits decide on a cosine."""

    name: str = "pairs"
    threshold: float = 0.9
    span: int = 0
    together: bool = True

    def __post_init__(self) -> None:
        # Every value must allow a verifier to recompute the estimate.
        whole("span", self.span, 0)
        if self.span and not self.together:
            raise InputError("An estimator that takes tenants apart (version 1) has no span.")
        if self.name not in ESTIMATORS:
            raise InputError(
                f"There is no estimator {self.name!r} that a verifier can recompute.",
                f"Available: {', '.join(ESTIMATORS)}.",
            )
        if not (0 <= self.threshold <= 1 and self.steps / self.STEPS == self.threshold):
            raise InputError(
                "The estimator's threshold is a cosine from 0 to 1 with at most four decimals, not"
                f" {self.threshold!r}."
            )

    @property
    def steps(self) -> int:
        """The threshold in ten-thousandths."""
        return round(self.threshold * self.STEPS)


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The promise of a window.

    Attributes:
        window: Identifier of the window.
        tenants: Mechanism of each tenant's index, sorted by the tenant's name.
        relation: Relation between neighbouring indexes.
        queries: Most queries of one account in the window, q.
        accounts_most: Most accounts that can be admitted, over all tenants; times ``queries`` at
            most 100,000, over which a verifier can still estimate the coalition.
        epsilon: Promised to one account for its q queries.
        delta: Failure probability of that promise.
        k_max: Declared cap on a coalition.
        joint_delta: delta* of the joint guarantee, its probability of failure: at most 1 %.
        estimator: Estimator of the coalition's size.
        nonces_required: Whether a query without a client's nonce is refused: without one, the
            provider knows the noise of later answers when it draws the seed.

    Raises:
        InputError: A value is outside its range, or k_max · delta reaches joint_delta (§5.3).
    """

    window: str
    tenants: Mapping[str, Mechanism]
    relation: Relation
    queries: int
    accounts_most: int
    epsilon: float
    delta: float
    k_max: int
    joint_delta: float
    estimator: Estimator = field(default_factory=Estimator)
    nonces_required: bool = True

    def __post_init__(self) -> None:
        # 1. Names and sizes. 2. Tenants in one order: the policy has one text.
        _check_tenants(self.window, self.tenants)
        ordered = {name: self.tenants[name] for name in sorted(self.tenants)}
        object.__setattr__(self, "tenants", MappingProxyType(ordered))
        if self.relation not in get_args(Relation):
            raise InputError(f"No such relation: {self.relation!r}.", "Use add-remove or replace.")
        whole("queries", self.queries)
        if (
            whole("accounts_most", self.accounts_most) > _MOST_ACCOUNTS
            or self.seed_count > _MOST_PLACES
        ):
            raise InputError(
                f"{self.accounts_most:,} accounts with {self.queries:,} queries each are too many"
                f" for one audit: at most {_MOST_ACCOUNTS:,} accounts, and {_MOST_PLACES:,} queries"
                " in all.",
                "Make the window shorter: fewer accounts, or fewer queries of each.",
            )
        # 3. The promise: k_max · delta below joint_delta, or composition fails (§5.3).
        positive("epsilon", self.epsilon)
        if self.joint_delta > _MOST_DELTA:
            raise InputError(
                f"joint_delta is the probability of no promise: at most {_MOST_DELTA:g}, not"
                f" {self.joint_delta:g}.",
                "Choose one far below 1 / documents, e.g. 1e-6.",
            )
        composition_slack(
            probability("delta", self.delta),
            whole("k_max", self.k_max),
            probability("joint_delta", self.joint_delta),
        )

    @property
    def seed_count(self) -> int:
        """Sub-seeds that the open record commits to: one per place and sequence."""
        return self.accounts_most * self.queries

    @property
    def digest(self) -> str:
        """C_Π: SHA-256 of :meth:`encode`, in hex."""
        return hashlib.sha256(self.encode()).hexdigest()

    def encode(self) -> bytes:
        """Return the policy's one text: canonical JSON, numbers as strings."""
        # Numbers as strings, each in its one spelling.
        fields: dict[str, object] = {name: str(getattr(self, name)) for name in _WHOLES}
        fields |= {name: repr(float(getattr(self, name))) for name in _REALS}
        estimator = {
            "name": self.estimator.name,
            "threshold": repr(float(self.estimator.threshold)),
        }
        if self.estimator.together:
            estimator["span"] = str(self.estimator.span)
        fields |= {
            "version": VERSION if self.estimator.together else _APART,
            "window": self.window,
            "tenants": {name: _written(mechanism) for name, mechanism in self.tenants.items()},
            "relation": self.relation,
            "estimator": estimator,
            "nonces_required": self.nonces_required,
        }
        return canonical(fields)

    @classmethod
    def parse(cls, data: bytes) -> WindowPolicy:
        """Return the policy of :meth:`encode`'s text; every other text is refused.

        Raises:
            VerificationError: ``policy.version``, ``policy.fields`` (missing, unknown, of another
                type, or a number in another spelling), ``policy.invalid`` (a value or combination
                that no policy may have), or by
                :func:`~ragwitness.crypto.hashing.parse` ``policy.*``.
        """
        value = parse(data, MOST_BYTES, "policy")
        current = isinstance(value, dict) and value.get("version") in (VERSION, _APART)
        require(
            current,
            "policy.version",
            f"This is no policy of {VERSION} or {_APART}.",
            "Install the version of ragwitness that wrote it, or a newer one.",
        )
        try:
            policy = _read(value)
        except InputError as error:
            raise VerificationError("policy.invalid", error.message, error.hint) from error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise VerificationError(
                "policy.fields", f"A field is not readable: {error}."
            ) from error
        # One text for one policy: every field, and each number in its one spelling.
        form = "The policy has too few or other fields, or a number in another spelling."
        require(policy.encode() == data, "policy.fields", form)
        return policy


def _read(value: dict[str, Any]) -> WindowPolicy:
    """Return the policy of its fields, loosely: the caller compares it with its one text."""
    estimator = value["estimator"]
    return WindowPolicy(
        window=value["window"],
        tenants={name: _mechanism(fields) for name, fields in value["tenants"].items()},
        relation=value["relation"],
        estimator=Estimator(
            estimator["name"],
            _number(float, estimator["threshold"]),
            _number(int, estimator.get("span", "0")),
            value["version"] == VERSION,
        ),
        nonces_required=value["nonces_required"] is True,
        **{name: _number(int, value[name]) for name in _WHOLES},
        **{name: _number(float, value[name]) for name in _REALS},  # type: ignore[arg-type]
    )


def _written(mechanism: Mechanism) -> dict[str, str | None]:
    """Return a mechanism's fields as strings; None is the lowest or highest possible score."""
    values = asdict(mechanism) | {"variance": Fraction(mechanism.variance)}
    return {name: None if value is None else str(value) for name, value in values.items()}


def _mechanism(fields: dict[str, Any]) -> Mechanism:
    wholes = ("dimension", "capacity", "top", "shift", "scale", "low", "high")
    numbers: dict[str, Any] = {
        name: None if fields[name] is None else _number(int, fields[name]) for name in wholes
    }
    variance = Fraction(*(_number(int, text) for text in fields["variance"].split("/")))
    return Mechanism(variance=variance, sampler=fields["sampler"], **numbers)


def _number(kind: Callable[[str], _N], text: str) -> _N:
    # Long texts are refused: arithmetic on numbers of any length could take for ever.
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:20]!r}… is too long for a number")
    return kind(text)


def _check_tenants(window: str, tenants: Mapping[str, Mechanism]) -> None:
    # Limits that keep a verification feasible.
    if not 1 <= len(tenants) <= _MOST_TENANTS:
        raise InputError(
            f"A policy has 1 to {_MOST_TENANTS} tenants, not {len(tenants)}.",
            "Open one window for each part of them.",
        )
    widest = max(mechanism.dimension for mechanism in tenants.values())
    if widest > _MOST_DIMENSION:
        raise InputError(
            f"Vectors of dimension {widest:,} are too long for an audit: at most"
            f" {_MOST_DIMENSION:,}.",
            "Use an embedder with shorter vectors.",
        )
    for name in (window, *tenants):
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} names no window and no tenant.",
                "Use 1 to 64 letters, digits, dots, hyphens and underscores.",
            )


# The policy as its provider writes it.


def read_policy(path: Path) -> WindowPolicy:
    """Return the policy of a TOML file; ``ragwitness attest commit --example-policy`` prints one.

    Raises:
        InputError: The file cannot be read, a field is missing, unknown or outside its range, or
            a given sigma does not keep the promise to an account.
    """
    # 1. The fields.
    value = _toml(path)
    _expect_keys(value, {"window", "relation", "tenants", *_WHOLES, *_REALS}, "the policy")
    tenants = value["tenants"]
    if not isinstance(tenants, dict):
        raise InputError(f"{path}: tenants is no table.", "Write [tenants.NAME] above its fields.")
    numbers = {name: whole(name, value[name]) for name in _WHOLES}
    reals = {name: float(positive(name, value[name])) for name in _REALS}
    # Policies of 0.3.0 have this line; any other value would promise what is no longer done.
    if value.get("noise", "opened") != "opened":
        raise InputError(
            f"Noise that is {value['noise']!r} was removed: the noise of challenged answers is"
            " opened.",
            "Leave the line out, and show the bundle to an auditor under contract alone.",
        )
    relation = value["relation"]
    delta = probability("delta", reals["delta"])
    needs = Promise(reals["epsilon"], delta, numbers["queries"], relation)
    # 2. Each tenant's noise: as given, or the least that keeps the promise.
    policy = WindowPolicy(
        window=str(value["window"]),
        tenants={name: _mechanism_of(name, fields, needs) for name, fields in tenants.items()},
        relation=relation,
        estimator=_estimator(value.get("estimator", {})),
        nonces_required=bool(value.get("nonces_required", True)),
        **numbers,
        **reals,  # type: ignore[arg-type]
    )
    # 3. An audit under this policy can pass.
    for name, mechanism in policy.tenants.items():
        epsilon = joint_epsilon(policy, mechanism)
        if epsilon is None or epsilon > MOST_EPSILON:
            raise InputError(
                f"{policy.k_max} accounts of {name} together would know too much: no joint epsilon"
                f" up to {MOST_EPSILON:g} holds at joint_delta {policy.joint_delta:g}, so no audit"
                " could pass.",
                "Lower epsilon, queries or k_max.",
            )
    return policy


def joint_epsilon(policy: WindowPolicy, mechanism: Mechanism) -> float | None:
    """Return the verifier's epsilon of k_max accounts with all their queries, at delta*.

    None where no epsilon holds.
    """
    answers = policy.k_max * policy.queries
    return worst_epsilon(mechanism, policy.joint_delta, answers, policy.relation)


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise to one account for all its queries."""

    epsilon: float
    delta: float
    queries: int
    relation: Relation

    def worst(self, mechanism: Mechanism) -> float:
        """Return mu of the account's worst queries."""
        return Terms.of(mechanism, 1.0, self.relation).worst_mu(self.queries)

    def rest(self, mechanism: Mechanism) -> float:
        """Return the rest of delta beside the failures of the noise's table.

        Raises:
            InputError: There is none.
        """
        rest = self.delta - mechanism.extra_delta(self.epsilon, self.queries)
        if rest <= 0:
            raise InputError(
                f"At epsilon {self.epsilon:g} the table of the noise alone fails more often than"
                f" delta = {self.delta:g}.",
                "Promise a smaller epsilon (50 or less), or raise the scale for exact noise.",
            )
        return rest


def _mechanism_of(name: str, value: object, promise: Promise) -> Mechanism:
    if not isinstance(value, dict):
        raise InputError(f"The tenant {name!r} is no table.", "Write [tenants.NAME].")
    _expect_keys(value, set(_TENANT), f"the tenant {name}", {"sigma"})
    # The least noise, or the given sigma.
    numbers = {field: whole(field, value[field]) for field in _TENANT}
    if "sigma" not in value:
        return _least(numbers, promise)
    mechanism = provable_mechanism(sigma=positive("sigma", value["sigma"]), **numbers)
    # A given sigma has to keep the promise to an account, exactly accounted.
    epsilon = epsilon_at(promise.rest(mechanism), promise.worst(mechanism))
    if epsilon > promise.epsilon:
        raise InputError(
            f"With sigma {value['sigma']:g} an account of {name} has epsilon {epsilon:.4g} after"
            f" {promise.queries} queries, more than it is promised.",
            "Raise sigma or epsilon, allow fewer queries, or leave sigma out to have it computed.",
        )
    return mechanism


def _least(numbers: Mapping[str, int], promise: Promise) -> Mechanism:
    """Return the mechanism with the least noise that keeps the promise."""
    # Start at the ideal Gaussian, then correct for the real noise.
    reach = 2.0 if promise.relation == "replace" else 1.0
    sigma = reach * math.sqrt(promise.queries) / mu_for(promise.epsilon, promise.delta)
    for _ in range(_STEPS):  # smoothing and the table cost a little more than the ideal
        mechanism = provable_mechanism(sigma=sigma, **numbers)
        rest, worst = promise.rest(mechanism), promise.worst(mechanism)
        if epsilon_at(rest, worst) <= promise.epsilon:
            break
        sigma *= worst / mu_for(promise.epsilon, rest) * (1 + 1e-9)
    return mechanism


def _estimator(value: object) -> Estimator:
    if not isinstance(value, dict):
        raise InputError("The estimator is no table.", "Write [estimator] above its fields.")
    _expect_keys(value, set(), "the estimator", {"name", "threshold", "span"})
    threshold = value.get("threshold", Estimator().threshold)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise InputError(f"The estimator's threshold is no number: {threshold!r}.")
    return Estimator(**(value | {"threshold": float(threshold)}))


def _expect_keys(
    value: Mapping[str, object], needed: set[str], what: str, extra: set[str] | None = None
) -> None:
    allowed = needed | (extra if extra is not None else {"estimator", "nonces_required", "noise"})
    hint = "ragwitness attest commit --example-policy prints a complete one."
    # The first missing or unknown field is named.
    if missing := sorted(needed - value.keys()):
        raise InputError(f"The field {missing[0]!r} is missing in {what}.", hint)
    if unknown := sorted(value.keys() - allowed):
        raise InputError(f"There is no field {unknown[0]!r} in {what}.", hint)


def _toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(_MOST_TOML).decode())
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.",
            "ragwitness attest commit --example-policy prints a policy to start from.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from error
