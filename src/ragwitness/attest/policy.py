"""What a provider promises for a window, fixed before its first query: C_Π of the paper (§5.3)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, get_args

from ragwitness.crypto.canonical import canonical, parse, parse_u64
from ragwitness.errors import InputError, VerificationError
from ragwitness.privacy.accounting.ranges import positive, probability, whole
from ragwitness.privacy.accounting.sensitivity import Relation
from ragwitness.privacy.accounting.verdict import composition_slack
from ragwitness.privacy.mechanism import Mechanism

__all__ = ["ESTIMATORS", "MOST_BYTES", "Estimator", "Policy"]

VERSION = "ragwitness/policy/v1"
ESTIMATORS = ("pairs", "cores")
"""Coalition estimators whose result is the same on every machine."""

MOST_BYTES = 1 << 17
"""Longest policy that is read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_MOST_TENANTS = 128
_MOST_PLACES = 100_000  # queries: a verifier estimates the coalition over all pairs
_MOST_ACCOUNTS = 4_096
_MOST_DIMENSION = 8_192  # the odometer holds a square of it
_MOST_DELTA = 0.01
_WHOLES = ("queries", "accounts_most", "k_max")
_REALS = ("epsilon", "delta", "joint_delta")
_OTHERS = ("version", "window", "tenants", "relation", "estimator", "nonces_required")


@dataclass(frozen=True, slots=True)
class Estimator:
    """How the size of a coalition is estimated (R5, §5.5).

    Attributes:
        name: ``"pairs"``, the paper's largest component, or ``"cores"``, its innermost core, which
            chains of chance links do not make.
        threshold: Least cosine of two queries that joins their accounts: from 0 to 1, with at
            most four decimals.
    """

    STEPS: ClassVar[int] = 10_000
    """From threshold 0 to 1, so few that whole numbers of 64 bits decide on a cosine."""

    name: str = "pairs"
    threshold: float = 0.9

    def __post_init__(self) -> None:
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
class Policy:
    """Everything that a window is held to.

    Attributes:
        window: Identifier of the window.
        tenants: Mechanism of each tenant's index, sorted by the tenant's name.
        relation: Which indexes are neighbours.
        queries: Most queries of one account in the window, q.
        accounts_most: Most accounts that can be admitted, over all tenants; times ``queries`` at
            most 100,000, over which a verifier can still estimate the coalition.
        epsilon: Promised to one account for its q queries.
        delta: Of that promise.
        k_max: Declared cap on a coalition.
        joint_delta: delta* of the joint guarantee, at most 1 %: so often nothing is promised.
        estimator: Of the coalition's size.
        nonces_required: Whether a query without a nonce of its client is refused: without one, the
            provider knows the noise of coming answers when it draws the seed.

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
        positive("epsilon", self.epsilon)
        if self.joint_delta > _MOST_DELTA:
            raise InputError(
                f"joint_delta is how often nothing is promised: at most {_MOST_DELTA:g}, not"
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
        found: dict[str, object] = {name: str(getattr(self, name)) for name in _WHOLES}
        found |= {name: repr(float(getattr(self, name))) for name in _REALS}
        threshold = repr(float(self.estimator.threshold))
        found |= {
            "version": VERSION,
            "window": self.window,
            "tenants": {name: _written(one) for name, one in self.tenants.items()},
            "relation": self.relation,
            "estimator": {"name": self.estimator.name, "threshold": threshold},
            "nonces_required": self.nonces_required,
        }
        return canonical(found)

    @classmethod
    def parse(cls, data: bytes) -> Policy:
        """Return the policy of :meth:`encode`'s text; every other text is refused.

        Raises:
            VerificationError: ``policy.version``, ``policy.fields`` (missing, unknown or of
                another type), ``policy.number`` (not in its one spelling), ``policy.invalid`` (a
                value or combination that no policy may have), or by
                :func:`~ragwitness.crypto.canonical.parse` ``policy.*``.
        """
        value = parse(data, MOST_BYTES, "policy")
        if not isinstance(value, dict) or value.get("version") != VERSION:
            raise VerificationError("policy.version", f"This is no policy of {VERSION}.")
        _expect(value, (*_WHOLES, *_REALS, *_OTHERS), "policy")
        try:
            policy = _read(value)
        except InputError as error:
            raise VerificationError("policy.invalid", error.message, error.hint) from error
        if policy.encode() != data:
            raise VerificationError(
                "policy.number", "A number of the policy is not in its one spelling."
            )
        return policy


def _read(value: dict[str, Any]) -> Policy:
    for name in ("tenants", "estimator"):
        if not isinstance(value[name], dict):
            raise VerificationError("policy.fields", f"The policy's {name} is no JSON object.")
    if not isinstance(value["nonces_required"], bool):
        raise VerificationError("policy.fields", "nonces_required is neither true nor false.")
    _expect(value["estimator"], ("name", "threshold"), "policy's estimator")
    estimator = Estimator(_text(value["estimator"]["name"]), _real(value["estimator"]["threshold"]))
    return Policy(
        window=_text(value["window"]),
        tenants={name: _mechanism(one) for name, one in value["tenants"].items()},
        relation=_text(value["relation"]),  # type: ignore[arg-type]  # checked there
        estimator=estimator,
        nonces_required=value["nonces_required"],
        **{name: _whole(value[name]) for name in _WHOLES},
        **{name: _real(value[name]) for name in _REALS},  # type: ignore[arg-type]
    )


def _written(mechanism: Mechanism) -> dict[str, str | None]:
    """Return a mechanism's fields as strings; None stands for the least or highest there is."""
    found: dict[str, str | None] = {}
    for each in fields(Mechanism):
        value = getattr(mechanism, each.name)
        found[each.name] = None if value is None else str(value)
    found["variance"] = str(Fraction(mechanism.variance))
    return found


def _mechanism(value: object) -> Mechanism:
    if not isinstance(value, dict):
        raise VerificationError("policy.fields", "A tenant of the policy has no mechanism.")
    _expect(value, tuple(each.name for each in fields(Mechanism)), "policy's mechanism")
    numbers: dict[str, Any] = {
        name: _whole(value[name]) for name in ("dimension", "capacity", "top", "shift", "scale")
    }
    for name in ("low", "high"):
        numbers[name] = None if value[name] is None else _signed(value[name])
    variance, sampler = _fraction(value["variance"]), _text(value["sampler"])
    return Mechanism(variance=variance, sampler=sampler, **numbers)  # type: ignore[arg-type]


def _check_tenants(window: str, tenants: Mapping[str, Mechanism]) -> None:
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


def _expect(value: dict[str, Any], names: tuple[str, ...], what: str) -> None:
    wrong = sorted(set(names) ^ set(value))
    if wrong:
        said = "lacks" if wrong[0] in names else "has an unknown"
        raise VerificationError("policy.fields", f"The {what} {said} field {wrong[0][:60]!r}.")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise VerificationError("policy.fields", f"{str(value)[:40]!r} stands where a text must.")
    return value


def _whole(value: object) -> int:
    return parse_u64(_text(value), "policy.number")


def _signed(value: object) -> int:
    text = _text(value)
    return -_whole(text[1:]) if text.startswith("-") else _whole(text)


def _real(value: object) -> float:
    text = _text(value)
    if not re.fullmatch(r"[0-9.e+-]{1,32}", text, re.ASCII):
        raise VerificationError("policy.number", f"{text[:40]!r} is no number.")
    try:
        return float(text)
    except ValueError as error:
        raise VerificationError("policy.number", f"{text[:40]!r} is no number.") from error


def _fraction(value: object) -> Fraction:
    above, _, below = _text(value).partition("/")
    bottom = _whole(below) if below else 1
    if not bottom:
        raise VerificationError("policy.number", "The variance is a quotient by zero.")
    return Fraction(_whole(above), bottom)
