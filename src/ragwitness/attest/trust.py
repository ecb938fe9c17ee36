"""A verifier's own knowledge: the log's keys, the randomness, and the policies that it accepts.

None of it can come from a bundle: a provider that chose it could prove anything. A provider also
writes its own policy, and proves one of epsilon 58 for a single account as faithfully as any other.
So the verifier pins a policy by its digest, or bounds that any policy must keep.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ragwitness.attest.commitments import parse_token
from ragwitness.attest.policy import MOST_EPSILON, WindowPolicy, joint_epsilon
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import parse_json
from ragwitness.crypto.hashing import canonical
from ragwitness.crypto.keys import PublicKey
from ragwitness.crypto.notes import Signers
from ragwitness.crypto.records import fault
from ragwitness.privacy.ranges import Relation, positive, probability, whole

_WEAK_EPSILON = math.log(99)  # a guess between two neighbouring indexes is right in 99 of 100
_WEAK_THRESHOLD = 0.999
_EXAMPLE = "docs/attest.md shows a complete trust file."
_T = TypeVar("_T")
_FORBID = ConfigDict(extra="forbid")

Digest = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
"""SHA-256 or 32 random bytes in lower-case hex; empty for none."""
Whole = Annotated[int, Field(ge=0)]
_Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Real = Annotated[float, BeforeValidator(lambda v: float(v) if isinstance(v, str) else v)]
"""A number, or its text: canonical JSON holds whole numbers alone."""


@dataclass(frozen=True, slots=True)
class PolicyBounds:
    """Bounds for any policy; each field's name gives their direction.

    Attributes:
        epsilon_most: Largest joint epsilon, of k_max accounts with all their queries, exactly
            accounted: the number that a verdict prints.
        delta_most: Largest delta* of it.
        k_max_least: Smallest cap on a coalition.
        threshold_most: Largest cosine from which two queries join their accounts.
        span_least: Smallest number of places in the log within which queries are compared; 0: all
            queries of the window are.
        relation: Relation between neighbouring indexes. ``"replace"`` is the stronger promise, and
            also satisfies ``"add-remove"``.
        nonces_required: Whether queries without a nonce of their client must be refused.

    Raises:
        InputError: No policy can keep a bound, or every policy does.
    """

    epsilon_most: _Real
    delta_most: _Real
    k_max_least: int
    threshold_most: _Real
    span_least: int = 0
    relation: Relation = "replace"
    nonces_required: bool = True
    __pydantic_config__: ClassVar[ConfigDict] = _FORBID

    def __post_init__(self) -> None:
        # Each bound in its range, and none that every policy keeps.
        positive("epsilon_most", self.epsilon_most)
        probability("delta_most", self.delta_most)
        whole("k_max_least", self.k_max_least)
        whole("span_least", self.span_least, 0)
        if self.epsilon_most > MOST_EPSILON:
            raise InputError(
                f"epsilon_most is at most {MOST_EPSILON:g}, not {self.epsilon_most:g}: above it no"
                " window passes, and nothing is promised."
            )
        if not 0 < self.threshold_most <= 1:
            raise InputError(
                f"threshold_most is a cosine above 0 and at most 1, not {self.threshold_most:g}."
            )

    def broken(self, policy: WindowPolicy) -> list[tuple[str, str]]:
        """Return each bound that a policy breaks: its name, and what the policy has."""
        # Every bound by name, whether it is broken, and the policy's value.
        estimator, worst = policy.estimator, worst_epsilon(policy)
        threshold, span = estimator.threshold, estimator.span
        epsilon = "none" if worst is None else f"{worst:.4g}"
        least = f"at least {self.span_least:,}" if self.span_least else "all queries"
        bounds = (
            (
                "epsilon",
                worst is None or worst > self.epsilon_most,
                f"epsilon is {epsilon}, at most {self.epsilon_most:g}",
            ),
            (
                "delta",
                policy.joint_delta > self.delta_most,
                f"delta* is {policy.joint_delta:g}, at most {self.delta_most:g}",
            ),
            (
                "k_max",
                policy.k_max < self.k_max_least,
                f"k_max is {policy.k_max}, at least {self.k_max_least}",
            ),
            (
                "threshold",
                threshold > self.threshold_most,
                f"threshold is {threshold:g}, at most {self.threshold_most:g}",
            ),
            ("span", span and not 0 < self.span_least <= span, f"span is {span:,}, {least}"),
            (
                "relation",
                self.relation == "replace" != policy.relation,
                f"relation is {policy.relation}, replace",
            ),
            (
                "nonces",
                self.nonces_required and not policy.nonces_required,
                "queries need no nonce of their client",
            ),
        )
        return [(name, text) for name, broken, text in bounds if broken]

    def plain(self) -> dict[str, Any]:
        """Return the fields as a trust file holds them: real numbers as texts."""
        return {n: repr(v) if isinstance(v, float) else v for n, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Pins:
    """Requirements on a window, by digests and bounds; an empty pin requires nothing.

    Attributes:
        policy: SHA-256 of the policy, in hex: one window's, since a policy names its window.
        bounds: Bounds of the policy; None for none.
        embedder: :attr:`~ragwitness.attest.commitments.CommittedEmbedder.digest`.
        unsigned_most: Most queries without the signature of a key in ``accounts`` and without a
            receipt, which the provider may have invented; None for any number.
        accounts: Public key (Ed25519, in hex) of accounts, by "tenant/account", as the verifier
            knows it: the log's own keys are the provider's word.
        transcript: Of a setup's ceremony, in trust files of 0.2.0; ignored.
    """

    policy: Digest = ""
    bounds: PolicyBounds | None = None
    embedder: Digest = ""
    unsigned_most: Whole | None = None
    accounts: Mapping[str, _Key] = field(default_factory=dict)
    transcript: Any = field(default=None, compare=False, repr=False)
    __pydantic_config__: ClassVar[ConfigDict] = _FORBID

    @property
    def on_policy(self) -> bool:
        """Whether the policy is pinned."""
        return bool(self.policy or self.bounds)

    def plain(self) -> dict[str, Any]:
        """Return the pins as a trust file holds them."""
        # Empty pins are left out of the file.
        values: dict[str, Any] = {
            "policy": self.policy,
            "embedder": self.embedder,
            "unsigned_most": self.unsigned_most,
            "accounts": dict(self.accounts),
            "bounds": self.bounds and self.bounds.plain(),
        }
        return {name: value for name, value in values.items() if value not in ("", None, {})}


def parse_pins(value: object) -> Pins:
    """Return the pins of a trust file's ``pins``.

    Raises:
        InputError: A field is unknown or of another type, or a bound is outside its range.
    """
    return read_strict(Pins, json.dumps(value), "pins")


def read_strict(type_: type[_T], data: bytes | str, what: str) -> _T:
    """Return a JSON text as a dataclass.

    Raises:
        InputError: It is no JSON, or a field is unknown, missing, given twice, or of another type.
    """
    try:
        adapter = TypeAdapter(type_)
        with suppress(json.JSONDecodeError, UnicodeDecodeError):  # named by the next line
            parse_json(data)
        return adapter.validate_json(data, strict=True)
    except ValidationError as error:
        raise InputError(f"{what} is refused: {fault(error)}.", _EXAMPLE) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is refused: {error}.", _EXAMPLE) from error


def worst_epsilon(policy: WindowPolicy) -> float | None:
    """Return the joint epsilon of the policy's worst tenant; None where one has none."""
    epsilons = [joint_epsilon(policy, mechanism) for mechanism in policy.tenants.values()]
    return None if None in epsilons else max(cast("list[float]", epsilons))


def policy_terms(policy: WindowPolicy) -> str:
    """Return a policy's promise, in one line."""
    span = policy.estimator.span
    apart = f", at most {span:,} queries apart" if span else ""
    return (
        f"{_epsilon_text(policy)} at delta* {policy.joint_delta:g} ({policy.relation}), for at most"
        f" {policy.k_max:,} accounts with {policy.queries:,} queries each, counted together from"
        f" cosine {policy.estimator.threshold:g} on{apart}"
    )


def _epsilon_text(policy: WindowPolicy) -> str:
    worst = worst_epsilon(policy)
    return "no epsilon" if worst is None else f"epsilon {worst:.3g}"


def worth_of(policy: WindowPolicy) -> list[str]:
    """Return the worth of an answer of each index: beside it, that of any other slot."""
    return [
        f"{name}: a perfect match is in an answer with chance {mechanism.worth:.2g}, any other slot"
        f" with {mechanism.top / mechanism.capacity:.2g}"
        for name, mechanism in policy.tenants.items()
    ]


def weak_points(policy: WindowPolicy) -> list[str]:
    """Return the weak points of a policy, each in one sentence."""
    # Every possible weakness, with its condition.
    worst, estimator = worst_epsilon(policy), policy.estimator
    points = {
        f"{_epsilon_text(policy)} lets somebody who knows all documents but one tell that one in"
        " more than 99 of 100 cases": worst is None or worst > _WEAK_EPSILON,
        "k_max 1: nothing is promised once two accounts pool their answers": policy.k_max == 1,
        f"threshold {estimator.threshold:g}: only accounts that repeat each other's queries word"
        " for word are counted as one coalition": estimator.threshold >= _WEAK_THRESHOLD,
        f"span {estimator.span:,}: accounts that ask at a larger distance are not counted"
        " together": estimator.span,
        "relation add-remove: for a replaced document, epsilon is not this number": policy.relation
        != "replace",
        "no nonces: the provider may know the noise of later answers": not policy.nonces_required,
    }
    return [text for text, weak in points.items() if weak]


_VERSION = "ragwitness/trust/v1"


@dataclass(frozen=True, slots=True)
class Trust:
    """A verifier's own knowledge.

    Attributes:
        notes: Keys of the log and of its witnesses, and the quorum of these.
        beacon: The public random value of the challenge; empty before there is one.
        records: Number of challenged records; 0 before there is a challenge.
        close: The close from which they were drawn, as
            :func:`~ragwitness.attest.commitments.checkpoint_token` writes it; empty before. A log
            that is closed again after the beacon is known can be closed so that bad records are
            missed.
        pins: Requirements on the window's policy and embedder; without them no bundle passes.
        noise_beacon: The public value that enters every noise of the window; empty for none.
        noise_open: A checkpoint of the opened window, as ``checkpoint_token`` writes it, that the
            verifier saw before that value was drawn; empty for none.
        noise_time: Publication time of the value, POSIX seconds; 0 where it is unknown. Either of
            the two shows that the provider had committed to its secret before.
    """

    notes: Signers
    beacon: bytes = b""
    records: int = 0
    close: str = ""
    pins: Pins = field(default_factory=Pins)
    noise_beacon: bytes = b""
    noise_open: str = ""
    noise_time: int = 0

    @property
    def listeners(self) -> Signers:
        """Keys whose signatures count under checkpoints from while the log served.

        Witnesses are not required: none can have signed yet.
        """
        return replace(self.notes, quorum=0)

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        # Optional fields are written where they have a value.
        pins = self.pins.plain()
        noise = {
            "noise_beacon": self.noise_beacon.hex(),
            "noise_open": self.noise_open,
            "noise_time": self.noise_time,
        }
        return canonical(
            ({"pins": pins} if pins else {})
            | {name: value for name, value in noise.items() if value}
            | {
                "beacon": self.beacon.hex(),
                "close": self.close,
                "log": [key.text for key in self.notes.log],
                "quorum": self.notes.quorum,
                "records": self.records,
                "version": _VERSION,
                "witnesses": [key.text for key in self.notes.witnesses],
            }
        )


@dataclass(frozen=True, slots=True)
class _TrustFile:
    """The fields of the file; ``setup``, of 0.2.0, is ignored."""

    version: Literal["ragwitness/trust/v1"]
    log: list[str]
    witnesses: list[str] = field(default_factory=list)
    quorum: Whole | None = None
    beacon: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] = ""
    records: Whole = 0
    close: str = ""
    pins: Pins = field(default_factory=Pins)
    noise_beacon: Digest = ""
    noise_open: str = ""
    noise_time: Whole = 0
    setup: Any = None
    __pydantic_config__: ClassVar[ConfigDict] = _FORBID


def parse_trust(data: bytes) -> Trust:
    """Return a trust file's contents. It is the verifier's own: any JSON layout will do.

    Raises:
        InputError: It is not a trust file, or a value in it cannot be.
    """
    file = read_strict(_TrustFile, data, "The trust file")
    # A quorum has no default: 0 would let the log vouch for itself.
    if file.witnesses and file.quorum is None:
        raise _wrong("it names witnesses and no quorum, the number of them that must have signed")
    # Keys as texts, then the values of the challenge and of the noise.
    log, witnesses = (tuple(map(PublicKey.parse, keys)) for keys in (file.log, file.witnesses))
    return Trust(
        Signers(log, witnesses, file.quorum or 0),
        bytes.fromhex(file.beacon),
        file.records,
        _token("close", file.close),
        file.pins,
        bytes.fromhex(file.noise_beacon),
        _token("noise_open", file.noise_open),
        file.noise_time,
    )


def _token(name: str, text: str) -> str:
    """Return the checkpoint that a trust file names, with its form checked."""
    try:
        if text:
            parse_token(text, name)
    except VerificationError as error:
        raise _wrong(f"{name} is not the size and the root of a checkpoint") from error
    return text


def _wrong(why: str) -> InputError:
    return InputError(
        f"This is no trust file: {why}.",
        "Write one by hand from the log's public key, see docs/attest.md.",
    )
