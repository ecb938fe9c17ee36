"""What a verifier knows before it opens a bundle: whose log, and which randomness.

Nothing in a bundle can say these: a provider that made them up could prove anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ragwitness.attest.commitments import parse_token
from ragwitness.attest.policy import MOST_EPSILON, WindowPolicy, joint_epsilon
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import canonical
from ragwitness.crypto.keys import PublicKey
from ragwitness.crypto.notes import Signers
from ragwitness.privacy.ranges import Relation, positive, probability, whole

# What a verifier asks of a window besides its proofs: its policy and embedder.
#
# A provider writes its own policy, and one of epsilon 58 for a single account is kept as faithfully
# as any other. So the verifier states what it accepts: one policy by its digest, or bounds that any
# policy must keep.


_WEAK_EPSILON = math.log(99)  # whoever compares two neighbouring indexes is right in 99 of 100
_WEAK_THRESHOLD = 0.999
_NEAR = 0.8  # of the epsilon that is asked for; steps of the noise leave less to it
_DIGESTS = ("policy", "embedder")
_WHOLE_ONE = "docs/attest.md shows a whole trust file."


STRICT = ConfigDict(extra="forbid")
Digest = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
"""SHA-256 or 32 random bytes in lower-case hex; empty for none."""
Whole = Annotated[int, Field(ge=0)]
_Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Real = Annotated[float, BeforeValidator(lambda v: float(v) if isinstance(v, str) else v)]
"""A number, or its text: canonical JSON holds whole numbers alone."""


@dataclass(frozen=True, slots=True)
class PolicyBounds:
    """What any policy must keep; each field's name says which way it binds.

    Attributes:
        epsilon_most: Largest joint epsilon, of k_max accounts with all their queries, exactly
            accounted: the number that a verdict prints.
        delta_most: Largest delta* of it.
        k_max_least: Smallest cap on a coalition.
        threshold_most: Largest cosine from which two queries join their accounts.
        span_least: Smallest number of places in the log within which queries are compared; 0: all
            queries of the window are.
        relation: What may differ between two indexes. ``"replace"`` is the stronger promise, and
            is taken where ``"add-remove"`` is asked for.
        nonces_required: Whether queries without a nonce of their client must be refused.

    Raises:
        InputError: A bound that nothing keeps, or that bounds nothing.
    """

    epsilon_most: _Real
    delta_most: _Real
    k_max_least: int
    threshold_most: _Real
    span_least: int = 0
    relation: Relation = "replace"
    nonces_required: bool = True
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    def __post_init__(self) -> None:
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
        used, found = policy.estimator, list[tuple[str, str]]()
        worst = worst_epsilon(policy)
        if worst is None or worst > self.epsilon_most:
            has = "none" if worst is None else f"{worst:.4g}"
            found.append(("epsilon", f"epsilon is {has}, at most {self.epsilon_most:g}"))
        if policy.joint_delta > self.delta_most:
            found.append(
                ("delta", f"delta* is {policy.joint_delta:g}, at most {self.delta_most:g}")
            )
        if policy.k_max < self.k_max_least:
            found.append(("k_max", f"k_max is {policy.k_max}, at least {self.k_max_least}"))
        if used.threshold > self.threshold_most:
            found.append(
                ("threshold", f"threshold is {used.threshold:g}, at most {self.threshold_most:g}")
            )
        if used.span and not 0 < self.span_least <= used.span:
            least = f"at least {self.span_least:,}" if self.span_least else "all queries"
            found.append(("span", f"span is {used.span:,}, {least}"))
        if not used.together:
            found.append(("estimator", "the estimator takes tenants apart (version 1)"))
        if self.relation == "replace" and policy.relation != "replace":
            found.append(("relation", f"relation is {policy.relation}, replace"))
        if self.nonces_required and not policy.nonces_required:
            found.append(("nonces", "queries need no nonce of their client"))
        return found

    def plain(self) -> dict[str, Any]:
        """Return the fields as a trust file holds them: real numbers as texts."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {n: repr(v) if isinstance(v, float) else v for n, v in values.items()}


@dataclass(frozen=True, slots=True)
class Pins:
    """What a window must be, by digests and bounds; an empty pin asks nothing.

    Attributes:
        policy: SHA-256 of the policy, in hex: one window's, since a policy names its window.
        bounds: Bounds that the policy must keep; None for none.
        embedder: :attr:`~ragwitness.attest.commitments.CommittedEmbedder.digest`.
        unsigned_most: Most queries that neither the signature of a key in ``accounts`` nor a
            receipt covers, which the provider may have invented; None for any number.
        accounts: Public key (Ed25519, in hex) of accounts, by "tenant/account", as the verifier
            knows it: the log's own are the provider's word.
        transcript: Of a setup's ceremony, in trust files of before; passed over.
    """

    policy: Digest = ""
    bounds: PolicyBounds | None = None
    embedder: Digest = ""
    unsigned_most: Whole | None = None
    accounts: Mapping[str, _Key] = field(default_factory=dict)
    transcript: Any = field(default=None, compare=False, repr=False)
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @property
    def on_policy(self) -> bool:
        """Whether anything is asked of the policy."""
        return bool(self.policy or self.bounds)

    def plain(self) -> dict[str, Any]:
        """Return what is pinned, as a trust file holds it."""
        found: dict[str, Any] = {
            name: getattr(self, name) for name in _DIGESTS if getattr(self, name)
        }
        if self.unsigned_most is not None:
            found["unsigned_most"] = self.unsigned_most
        if self.accounts:
            found["accounts"] = dict(self.accounts)
        return found if self.bounds is None else found | {"bounds": self.bounds.plain()}


def parse_pins(value: object) -> Pins:
    """Return the pins of a trust file's ``pins``.

    Raises:
        InputError: A field is unknown or of another type, or a bound is outside its range.
    """
    return read_strict(Pins, json.dumps(value), "pins")


_Read = TypeVar("_Read")


def read_strict(type_: type[_Read], data: bytes | str, what: str) -> _Read:
    """Return what a JSON text says, field by field of a dataclass.

    Raises:
        InputError: It is no JSON, or a field is unknown, missing, or of another type.
    """
    try:
        return _adapter(type_).validate_json(data, strict=True)  # type: ignore[arg-type, no-any-return]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "unexpected_keyword_argument":
            raise InputError(f"There is no field {place[:60]!r} in {what}.", _WHOLE_ONE) from error
        why = f"{what} is refused at {place or 'its form'}: {first['msg']}."
        raise InputError(why, _WHOLE_ONE) from error


@cache
def _adapter(type_: type) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def worst_epsilon(policy: WindowPolicy) -> float | None:
    """Return the joint epsilon of the policy's worst tenant; None where one has none."""
    found = [joint_epsilon(policy, mechanism) for mechanism in policy.tenants.values()]
    return None if None in found else max(cast("list[float]", found))


def policy_terms(policy: WindowPolicy) -> str:
    """Return what a policy promises, in one line."""
    worst, used = worst_epsilon(policy), policy.estimator
    shown = "no epsilon" if worst is None else f"epsilon {worst:.3g}"
    span = f", at most {used.span:,} queries apart" if used.span else ""
    return (
        f"{shown} at delta* {policy.joint_delta:g} ({policy.relation}), for at most"
        f" {policy.k_max:,} accounts with {policy.queries:,} queries each, counted together from"
        f" cosine {used.threshold:g} on{span}"
    )


def worth_of(policy: WindowPolicy) -> list[str]:
    """Return what an answer of each index is worth, and where a floor of the noise decided it.

    Noise of coins has edges, which answers must not reach more often than delta. So it cannot be as
    small as a large epsilon asks for.
    """
    found = []
    for name, mechanism in policy.tenants.items():
        said = (
            f"{name}: a perfect match is in an answer with chance {mechanism.worth:.2g}, any other"
            f" slot with {mechanism.top / mechanism.capacity:.2g}"
        )
        if mechanism.coins:
            own = mechanism.coin_epsilon(policy.delta, policy.queries, policy.relation)
            if own is not None and own < _NEAR * policy.epsilon:
                said += (
                    f"; the floor of proved noise gives an account epsilon {own:.3g} where"
                    f" {policy.epsilon:g} was asked for"
                )
        found.append(said)
    return found


def weak_points(policy: WindowPolicy) -> list[str]:
    """Return by what a policy promises little, each in one sentence."""
    worst, used, found = worst_epsilon(policy), policy.estimator, list[str]()
    if worst is None or worst > _WEAK_EPSILON:
        shown = "no epsilon" if worst is None else f"epsilon {worst:.3g}"
        found.append(
            f"{shown} lets somebody who knows all documents but one tell that one in more than 99"
            " of 100 cases"
        )
    if policy.k_max == 1:
        found.append("k_max 1: nothing is promised once two accounts pool their answers")
    if used.threshold >= _WEAK_THRESHOLD:
        found.append(
            f"threshold {used.threshold:g}: only accounts that repeat each other's queries word for"
            " word are counted as one coalition"
        )
    if used.span:
        found.append(
            f"span {used.span:,}: accounts that ask more than so many queries apart are not counted"
            " together"
        )
    if not used.together:
        found.append("version 1: a coalition with accounts of several tenants is not counted")
    if policy.relation != "replace":
        found.append("relation add-remove: for a replaced document, epsilon is not this number")
    if not policy.nonces_required:
        found.append("no nonces: the provider may know the noise of answers to come")
    return found


_VERSION = "ragwitness/trust/v1"


@dataclass(frozen=True, slots=True)
class Trust:
    """A verifier's own knowledge.

    Attributes:
        notes: Keys of the log and of its witnesses, and how many of these must have signed.
        beacon: The public random value of the challenge; empty before there is one.
        records: How many records were challenged; 0 before there is a challenge.
        close: The close from which they were drawn, as
            :func:`~ragwitness.attest.commitments.checkpoint_token` writes it; empty before. A log
            that is closed again once the beacon is known can be closed so that bad records are
            missed.
        pins: What the window's policy and embedder must be. A trust file of before has
            none, and nothing passes by it.
        noise_beacon: The public value that enters every noise of the window; empty for none.
        noise_open: A checkpoint of the opened window, as ``checkpoint_token`` writes it, that was
            shown before that value was drawn; empty where the verifier did not see one.
        noise_time: When the value became known, POSIX seconds; 0 where that is not known. Either
            of the two shows that the provider had committed to its secret before.
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
        """Keys whose signatures count under what the log showed while it served.

        No witness is asked for: none can have signed yet.
        """
        return replace(self.notes, quorum=0)

    def encode(self) -> bytes:
        """Return the canonical JSON."""
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
    """The fields of the file; those of before that say nothing any more are passed over."""

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
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


def parse_trust(data: bytes) -> Trust:
    """Return what a trust file says. It is the verifier's own: any JSON layout will do.

    Raises:
        InputError: It is not a trust file, or a value in it cannot be.
    """
    found = read_strict(_TrustFile, data, "The trust file")
    # A quorum has no default: 0 would let the log vouch for itself.
    if found.witnesses and found.quorum is None:
        raise _wrong("it names witnesses, and no quorum says how many of them must have signed")
    log, witnesses = (tuple(map(PublicKey.parse, keys)) for keys in (found.log, found.witnesses))
    return Trust(
        Signers(log, witnesses, found.quorum or 0),
        bytes.fromhex(found.beacon),
        found.records,
        _token("close", found.close),
        found.pins,
        bytes.fromhex(found.noise_beacon),
        _token("noise_open", found.noise_open),
        found.noise_time,
    )


def _token(name: str, text: str) -> str:
    """Return the checkpoint that a trust file names, whose form is checked."""
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
