"""What a tenant is promised: fixed when it is created, checked then, and never changed after."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.bounds import composition_slack
from ragwitness.privacy.accounting.gaussian import epsilon_at, mu_for, sigma_for
from ragwitness.privacy.accounting.ranges import (
    Relation,
    positive,
    probability,
    score_sensitivity,
    whole,
)
from ragwitness.privacy.mechanism.config import Mechanism, mechanism_for, provable_mechanism
from ragwitness.privacy.odometer.spectral import Terms

SHORTEST_WINDOW, LONGEST_WINDOW = 60, 10 * 366 * 86_400
"""Seconds of an audit window."""

LIFETIME = 12
"""Windows that an index may spend in full, where no lifetime epsilon is named."""

Meter = Literal["index", "documents"]

_RELEASES = 1 << 32
"""Answers that the sampler's own share of delta is reserved for."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is asked for; :func:`make_policy` turns it into a policy or refuses it.

    Attributes:
        epsilon: Of one account in one window (the paper's epsilon_acc).
        delta: Of one account (delta_acc).
        queries: That one account may ask in a window, q.
        accounts: Declared cap on a coalition, k_max.
        joint_delta: delta* of the whole index.
        joint_epsilon: Of the whole index in one window, whoever asks; None takes what the noise
            gives for ``accounts`` accounts that ask all they may.
        lifetime_epsilon: Of the index's contents over all windows, whoever asks, at
            ``joint_delta``; None takes what :data:`LIFETIME` full windows come to. Policies of
            versions before have none.
        texts: Whether ``/v1/retrieval`` gives ids and texts of what it selects, as a chat does,
            or numbers of slots alone.
        sigma: Noise in units of a perfect match's score; None takes the least that keeps the
            account's promise.
        payer_queries: That all accounts of one payer may ask in a window; None: ``accounts``
            times ``queries``.
        top: Slots per answer, K.
        capacity: Slots of the index; public, so leave room.
        relation: Which indexes are neighbours; ``replace`` covers adding and removing as well.
        window: Seconds after which the meters begin anew.
        embedder: Name of the embedder, for queries and documents.
        sampler: Of the noise, where there is no ``scale``.
        scale: Norm of the integer vectors, for answers that can be proved
            (``provable_mechanism``); None takes a finer grid,
            whose answers cannot.
        clip: Bounds within which every score is held before the noise; None: none. Public, so they
            must not come from the tenant's documents.
        meter: Whose budgets ``joint_epsilon`` and ``lifetime_epsilon`` are: ``index`` refuses every
            query that would pass the index's; with ``documents`` each text has them for itself, and
            leaves selection when its own are spent.
    """

    epsilon: float = 1.0
    delta: float = 1e-8
    queries: int = 1000
    accounts: int = 16
    joint_delta: float = 1e-6
    joint_epsilon: float | None = None
    sigma: float | None = None
    payer_queries: int | None = None
    top: int = 4
    capacity: int = 1024
    relation: Relation = "replace"
    window: int = 30 * 86_400
    embedder: str = "minilm"
    sampler: str = "table"
    scale: int | None = None
    lifetime_epsilon: float | None = None
    texts: bool = False
    clip: tuple[float, float] | None = None
    meter: Meter = "index"


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """A checked claim with the noise and the budget that follow from it.

    Attributes:
        claim: As given, with nothing left open.
        mechanism: What answers; its digest enters the key of every answer's noise.
        budget: mu that no sequence of answers of one window may pass, over all accounts.
    """

    claim: Claim
    mechanism: Mechanism
    budget: float

    @property
    def terms(self) -> Terms:
        """What the index's odometer measures against."""
        return Terms.of(self.mechanism, self.budget, self.claim.relation)

    @property
    def sensitivity(self) -> float:
        """The most that one answer moves one score, where 1 is a perfect match, as it is charged.

        At most the width of ``clip``, to a grid step, where scores are clipped.
        """
        terms = self.terms
        return terms.worst_mu(1) * terms.sigma

    @property
    def life(self) -> float:
        """The mu that no answers of all windows together may pass; infinite without a promise."""
        epsilon = self.claim.lifetime_epsilon
        return math.inf if epsilon is None else _budget(self.claim, self.mechanism, epsilon)

    @property
    def text_budget(self) -> float:
        """The mu that one text may spend in a window where texts have budgets of their own.

        Replacing a text is removing one and adding another, each at most this.
        """
        return self.budget / (2 if self.claim.relation == "replace" else 1)

    @property
    def text_life(self) -> float:
        """The mu that one text may spend over all windows; see :attr:`text_budget`."""
        return self.life / (2 if self.claim.relation == "replace" else 1)

    @property
    def account_epsilon(self) -> float:
        """Exact epsilon of one account that asks all it may, at its delta."""
        return epsilon_at(self.claim.delta, self.terms.worst_mu(self.claim.queries))

    def to_json(self) -> str:
        """Return the policy as JSON text."""
        # The variance is a fraction: a rounded one would be another mechanism with another digest.
        mechanism = asdict(self.mechanism) | {"variance": str(Fraction(self.mechanism.variance))}
        everything = {"claim": asdict(self.claim), "mechanism": mechanism, "budget": self.budget}
        return json.dumps(everything, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TenantPolicy:
        """Return the policy that :meth:`to_json` wrote.

        Raises:
            InputError: The text is something else.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            mechanism = fields["mechanism"]
            mechanism["variance"] = Fraction(mechanism["variance"])
            claim = fields["claim"]
            if claim.get("clip") is not None:
                claim["clip"] = (float(claim["clip"][0]), float(claim["clip"][1]))
            return cls(Claim(**claim), Mechanism(**mechanism), float(fields["budget"]))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise InputError(
                "The stored policy of a tenant cannot be read.",
                "Open the database with the version of ragwitness that wrote it.",
            ) from error


def make_policy(claim: Claim, dimension: int) -> TenantPolicy:
    """Check a claim and settle what it leaves open.

    Args:
        claim: What is asked for.
        dimension: Of the embedder's vectors.

    Raises:
        InputError: A value is outside its range, k_max · delta_acc reaches delta*, or the given
            noise does not keep the account's promise.
    """
    _check(claim)
    # 1. Noise that keeps one account's promise, epsilon_acc at delta_acc, over q queries.
    # Gaussian DP: (epsilon, delta) corresponds to one mu, and q adaptive queries compose to
    # mu sqrt(q) at most (docs/design/mechanism.md).
    goal = mu_for(claim.epsilon, claim.delta)
    mechanism, sigma = _noise(claim, dimension, goal)
    worst = Terms.of(mechanism, 1.0, claim.relation).worst_mu
    if worst(claim.queries) > goal:
        real = epsilon_at(claim.delta, worst(claim.queries))
        raise InputError(
            f"With sigma {sigma:g} an account's {claim.queries} queries come to epsilon {real:.4g},"
            f" not {claim.epsilon:g}, at delta {claim.delta:g}.",
            "Raise sigma, ask for fewer queries, or leave sigma out to have it computed.",
        )
    # 2. The whole index's budget at delta*: as asked for, or what k_max accounts can spend.
    all_of_them = claim.accounts * claim.queries
    joint = claim.joint_epsilon
    if joint is None:
        joint = epsilon_at(claim.joint_delta, worst(all_of_them))
    budget = _budget(claim, mechanism, joint)
    # 3. The contents' budget for life: mu of full windows adds up in squares.
    life = claim.lifetime_epsilon
    if life is None:
        life = _default_life(claim, mechanism, joint, budget)
    if life < joint:
        raise InputError(
            f"The lifetime epsilon {life:.4g} is below that of one window, {joint:.4g}.",
            "Raise it, or lower the joint epsilon of a window.",
        )
    _budget(claim, mechanism, life)
    payer = claim.payer_queries or all_of_them
    settled = replace(
        claim,
        sigma=sigma,
        sampler=mechanism.sampler,
        joint_epsilon=joint,
        payer_queries=payer,
        lifetime_epsilon=life,
    )
    return TenantPolicy(settled, mechanism, budget)


def _default_life(claim: Claim, mechanism: Mechanism, joint: float, budget: float) -> float:
    """Return the epsilon of :data:`LIFETIME` full windows, or of as many as the sampler bears."""
    for full in range(LIFETIME, 1, -1):
        life = epsilon_at(claim.joint_delta, math.sqrt(full) * budget)
        if mechanism.extra_delta(life, _RELEASES) < claim.joint_delta / 2:
            return life
    return joint


def _budget(claim: Claim, mechanism: Mechanism, epsilon: float) -> float:
    """Return the mu of ``epsilon`` at delta*, less what the sampler itself may miss.

    Raises:
        InputError: The sampler alone fails more often than that.
    """
    rest = claim.joint_delta - mechanism.extra_delta(epsilon, _RELEASES)
    if rest <= 0:
        raise InputError(
            f"At an epsilon of {epsilon:.4g} for the index the table of the noise alone fails more"
            f" often than delta* = {claim.joint_delta:g}.",
            "Lower the joint and the lifetime epsilon: so large a one promises nothing.",
        )
    return mu_for(epsilon, rest)


def _check(claim: Claim) -> None:
    positive("epsilon", claim.epsilon)
    composition_slack(claim.delta, claim.accounts, claim.joint_delta)  # k_max delta_acc < delta*
    whole("queries", claim.queries)
    whole("top", claim.top)
    whole("capacity", claim.capacity)
    if claim.payer_queries is not None:
        whole("payer_queries", claim.payer_queries)
    if claim.joint_epsilon is not None:
        positive("joint_epsilon", claim.joint_epsilon)
    if claim.lifetime_epsilon is not None:
        positive("lifetime_epsilon", claim.lifetime_epsilon)
    if claim.sigma is not None:
        positive("sigma", claim.sigma)
    if claim.clip is not None:
        low, high = claim.clip
        if not -1 <= low < high <= 1:
            raise InputError(
                f"Scores cannot be clipped to {low:g}..{high:g}.",
                "Give bounds A,B with A below B, both from -1 to 1.",
            )
        if claim.scale is not None:
            raise InputError(
                "The proof of a selection does not cover clipped scores.",
                "Leave either the clipping or the scale out.",
            )
    if claim.meter not in get_args(Meter):
        raise InputError(f"There is no meter {claim.meter!r}.", "Use index or documents.")
    if claim.meter == "documents" and claim.scale is not None:
        raise InputError(
            "The proof of a selection does not cover documents that are left out.",
            "Leave the scale out, or meter the index.",
        )
    # delta* lies strictly between 0 and 1.
    probability("joint_delta", claim.joint_delta)
    if not SHORTEST_WINDOW <= whole("window", claim.window) <= LONGEST_WINDOW:
        raise InputError(
            f"A window has {SHORTEST_WINDOW} to {LONGEST_WINDOW} seconds, not {claim.window}.",
            "Name its length in days, e.g. --window-days 30.",
        )


def _noise(claim: Claim, dimension: int, goal: float) -> tuple[Mechanism, float]:
    """Return the mechanism and its sigma; where none is given, the least that keeps ``goal``."""

    def built(sigma: float) -> Mechanism:
        if claim.scale is not None:
            return provable_mechanism(dimension, claim.capacity, claim.top, sigma, claim.scale)
        return mechanism_for(
            dimension,
            claim.capacity,
            claim.top,
            sigma,
            clip=claim.clip,
            sampler=claim.sampler,
        )

    if claim.sigma is not None:
        return built(claim.sigma), claim.sigma
    reach = score_sensitivity(claim.relation, claim.clip)
    sigma = sigma_for(claim.epsilon, claim.delta, claim.queries, reach)
    for _ in range(20):  # grid and smoothing cost a little more than the ideal
        mechanism = built(sigma)
        worst = Terms.of(mechanism, 1.0, claim.relation).worst_mu(claim.queries)
        if worst <= goal:
            break
        sigma *= worst / goal * (1 + 1e-9)
    return mechanism, sigma
