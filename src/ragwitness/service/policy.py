"""The promise to a tenant: checked and fixed when it is created, and never changed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import composition_slack
from ragwitness.privacy.codes import Placement
from ragwitness.privacy.gaussian import epsilon_at, mu_for, sigma_for
from ragwitness.privacy.mechanism import Mechanism, Sampler, mechanism_for
from ragwitness.privacy.odometer import Odometer, Terms
from ragwitness.privacy.ranges import (
    Relation,
    positive,
    probability,
    score_sensitivity,
    whole,
)
from ragwitness.stats.rates import Rate

SHORTEST_WINDOW, LONGEST_WINDOW = 60, 10 * 366 * 86_400
"""Seconds of an audit window."""

LIFETIME = 12
"""Windows that an index may spend in full, where no lifetime epsilon is named."""

Finder = Literal["codes", "noise"]
"""How documents are found: by where each was placed once, or by noisy scores (the paper's way)."""

FEW_TIMES_CHANCE = 3
"""An answer that is worth less than this many times chance is called chance."""

MOST_READ = 0.05
"""Share of an index that one account may read, whatever it asks for, before it is given away."""

_RELEASES = 1 << 32
"""Answers that the sampler's own share of delta is reserved for."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A wanted promise; :func:`make_policy` turns it into a policy or refuses it.

    With codes, ``mechanism``, ``epsilon``, ``texts``, ``top``, ``capacity`` and ``asked`` count
    alone: neither accounts nor windows enter what is promised.

    Attributes:
        mechanism: ``codes`` or ``noise``.
        epsilon: With codes, of a document for life, over all accounts; with noise, of one account
            in one window (the paper's epsilon_acc).
        delta: Failure probability of one account (delta_acc).
        queries: Number of queries that one account may ask in a window, q.
        accounts: Declared cap on a coalition, k_max.
        joint_delta: delta* of the whole index.
        joint_epsilon: Of the whole index in one window, over all accounts; None takes the epsilon
            of ``accounts`` accounts that ask all they may.
        lifetime_epsilon: Epsilon of the index's contents over all windows and accounts, at
            ``joint_delta``; None takes that of :data:`LIFETIME` full windows.
        texts: Whether retrieval and chats show ids and texts of the selection, or numbers of slots
            alone. With codes, of documents that share a word with the question.
        sigma: The least noise that keeps the account's promise, where 1 is a perfect match.
        payer_queries: That all accounts of one payer may ask in a window; None: ``accounts``
            times ``queries``.
        top: Slots per answer, K.
        capacity: Slots of the index; public, so leave room.
        relation: Which indexes are neighbours; ``replace`` covers adding and removing as well.
        window: Seconds after which the meters begin anew.
        embedder: Name of the embedder, for queries and documents; with codes nothing is embedded.
        sampler: Sampler of the noise, ``table`` or ``exact``.
        clip: Bounds within which every score is held before the noise; None: none. Public, so they
            must not come from the tenant's documents.
        asked: With codes, the public model of the words that are asked (``privacy.asked_words``).
    """

    mechanism: Finder = "codes"
    epsilon: float = 10.0
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
    sampler: Sampler = "table"
    lifetime_epsilon: float | None = None
    texts: bool = False
    clip: tuple[float, float] | None = None
    asked: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """A checked claim with the noise and the budget that follow from it.

    Attributes:
        claim: As given, with nothing left open.
        finder: The mechanism or placement.
        budget: mu that no sequence of answers of one window may pass, over all accounts. Without
            noise 0.
    """

    claim: Claim
    finder: Mechanism | Placement
    budget: float = 0.0

    @property
    def placement(self) -> Placement | None:
        """Where documents are placed; None with noise."""
        return self.finder if isinstance(self.finder, Placement) else None

    @property
    def mechanism(self) -> Mechanism:
        """The noise.

        Raises:
            InputError: There is none, and nothing to meter, bound or prove.
        """
        if isinstance(self.finder, Placement):
            raise InputError(
                "This tenant's documents are placed once for life (codes): its answers have no"
                " noise, no meter and no window.",
                "Create a tenant with --mechanism noise for that.",
            )
        return self.finder

    @property
    def chance(self) -> float:
        """Chance that a document is found by slots that are drawn by lot."""
        return self.claim.top / self.claim.capacity

    @property
    def worth(self) -> float:
        """Chance that the document which answers a question best is found.

        With noise a perfect match in a full index of others that score 0; with codes one whose
        rarest word the question names.
        """
        return self.finder.worth

    @property
    def reads(self) -> float:
        """Share of the index that one account reads in a window, whatever it asks for.

        Noise chooses slots by lot as good as always, and their texts are shown. With codes a text
        is shown for a word of its own alone.
        """
        if not self.claim.texts or self.placement is not None:
            return 0.0
        return float(1 - (1 - self.chance) ** self.claim.queries)

    @property
    def texts_shown(self) -> str:
        """Which texts a client gets to read; the promise does not cover them."""
        if not self.claim.texts:
            return "none"
        if self.placement is not None:
            return "of selected documents that share a word with the question"
        return f"of all selected slots: one account can read {self.reads:.2%} of the index"

    @property
    def sensitivity(self) -> float:
        """The most that one answer moves one score, where 1 is a perfect match, as it is charged.

        At most the width of ``clip``, to a grid step, where scores are clipped.
        """
        return self.terms.worst_mu(1) * self.terms.sigma

    @property
    def life(self) -> float:
        """The mu that no answers of all windows together may pass."""
        return _budget(self.claim, self.mechanism, self.claim.lifetime_epsilon or 0.0)

    def meter(self, state: bytes | None, granted: float | None = None) -> Odometer:
        """Return the meter of a window's index.

        Args:
            state: As stored; None: of no charge.
            granted: The grant of the window; None: the policy's budget.
        """
        meter = Odometer.from_bytes(state) if state else Odometer(self.terms)
        meter.terms = replace(meter.terms, budget=granted) if granted else meter.terms
        return meter

    @property
    def terms(self) -> Terms:
        """The terms of the odometer of an index with Gaussian noise."""
        return Terms.of(self.mechanism, self.budget, self.claim.relation)

    def to_json(self) -> str:
        """Return the policy as JSON text."""
        # The variance is a fraction: a rounded one would be another mechanism with another digest.
        everything: dict[str, Any] = {"claim": asdict(self.claim), "budget": self.budget}
        if isinstance(self.finder, Placement):
            everything["placement"] = asdict(self.finder)
        else:
            variance = {"variance": str(Fraction(self.finder.variance))}
            everything["mechanism"] = asdict(self.finder) | variance
        return json.dumps(everything, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TenantPolicy:
        """Return the policy that :meth:`to_json` wrote.

        Raises:
            InputError: The text is something else.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            claim = fields["claim"] | {"asked": tuple(fields["claim"]["asked"])}
            if "placement" in fields:
                asked = {"asked": claim["asked"]}
                return cls(Claim(**claim), Placement(**fields["placement"] | asked))
            mechanism = fields["mechanism"]
            mechanism["variance"] = Fraction(mechanism["variance"])
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
        claim: The wanted promise.
        dimension: Dimension of the embedder's vectors; with codes it does not count.

    Raises:
        InputError: A value is outside its range, or k_max · delta_acc reaches delta*.
    """
    if claim.mechanism == "codes":
        return TenantPolicy(
            claim, Placement.of(claim.capacity, claim.top, claim.epsilon, claim.asked)
        )
    _check(claim)
    # 1. Noise that keeps one account's promise, epsilon_acc at delta_acc, over q queries.
    # Gaussian DP: (epsilon, delta) corresponds to one mu, and q adaptive queries compose to
    # mu sqrt(q) at most (docs/design/mechanism.md).
    goal = mu_for(claim.epsilon, claim.delta)
    mechanism, sigma = _noise(claim, dimension, goal)
    worst = Terms.of(mechanism, 1.0, claim.relation).worst_mu
    # 2. The whole index's budget at delta*: as asked for, or what k_max accounts can spend.
    all_of_them = claim.accounts * claim.queries
    joint = claim.joint_epsilon
    if joint is None:
        joint = epsilon_at(claim.joint_delta, worst(all_of_them))
    budget = _budget(claim, mechanism, joint)
    # 3. The contents' budget for life: mu of full windows adds up in squares.
    life = claim.lifetime_epsilon
    if life is None:
        # Of LIFETIME full windows, or of as many as the sampler bears.
        counts = range(LIFETIME, 1, -1)
        epsilons = (epsilon_at(claim.joint_delta, math.sqrt(n) * budget) for n in counts)
        room = claim.joint_delta / 2
        life = next((e for e in epsilons if mechanism.extra_delta(e, _RELEASES) < room), joint)
    _check_life(life, joint)
    _budget(claim, mechanism, life)
    return TenantPolicy(_settled(claim, mechanism, sigma, joint, life), mechanism, budget)


def check_worth(policy: TenantPolicy, recall: Rate | None = None) -> None:
    """Check that answers find something, and that they do not give the index away.

    Args:
        policy: The promise.
        recall: The share of sample questions that found their texts; None: nobody asked any.

    Raises:
        InputError: They are as good as chance, or one account reads more than :data:`MOST_READ`.
    """
    # An answer must be better than chance, and must not reveal the index. Without questions even
    # the best question has to be; with some, what they found is shown to be.
    shown = policy.worth if recall is None else recall.low
    if shown < FEW_TIMES_CHANCE * policy.chance:
        by = "the best question" if recall is None else f"{recall.n} sample questions"
        raise InputError(
            f"At this promise an answer is chance: {by} may find no more than {shown:.2g}, where"
            f" chance finds {policy.chance:.2g}.",
            "Raise --epsilon (10 finds with codes), or say --knowingly.",
        )
    if policy.reads > MOST_READ:
        raise InputError(
            f"One account that asks {policy.claim.queries} questions can read {policy.reads:.0%} of"
            " the index: noise chooses slots by lot, and their texts are shown.",
            "Say --ids-only, use --mechanism codes, or say --knowingly.",
        )


def _settled(claim: Claim, mechanism: Mechanism, sigma: float, joint: float, life: float) -> Claim:
    """Return a claim with nothing left open."""
    return replace(
        claim,
        sigma=sigma,
        sampler=mechanism.sampler,
        joint_epsilon=joint,
        payer_queries=claim.payer_queries or claim.accounts * claim.queries,
        lifetime_epsilon=life,
    )


def _check_life(life: float, joint: float) -> None:
    if life < joint:
        raise InputError(
            f"The lifetime epsilon {life:.4g} is below that of one window, {joint:.4g}.",
            "Raise it, or lower the joint epsilon of a window.",
        )


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
    for name in ("joint_epsilon", "lifetime_epsilon"):
        if (value := getattr(claim, name)) is not None:
            positive(name, value)
    if claim.clip is not None:
        low, high = claim.clip
        if not -1 <= low < high <= 1:
            raise InputError(
                f"Scores cannot be clipped to {low:g}..{high:g}.",
                "Give bounds A,B with A below B, both from -1 to 1.",
            )
    if claim.mechanism not in get_args(Finder):
        raise InputError(f"There is no mechanism {claim.mechanism!r}.", "Use codes or noise.")
    # delta* lies strictly between 0 and 1.
    probability("joint_delta", claim.joint_delta)
    if not SHORTEST_WINDOW <= whole("window", claim.window) <= LONGEST_WINDOW:
        raise InputError(
            f"A window has {SHORTEST_WINDOW} to {LONGEST_WINDOW} seconds, not {claim.window}.",
            "Name its length in days, e.g. --window-days 30.",
        )


def _noise(claim: Claim, dimension: int, goal: float) -> tuple[Mechanism, float]:
    """Return the mechanism with the least sigma that keeps ``goal``, and that sigma."""

    def built(sigma: float) -> Mechanism:
        return mechanism_for(
            dimension, claim.capacity, claim.top, sigma, clip=claim.clip, sampler=claim.sampler
        )

    # Start from the ideal Gaussian, and raise sigma until the real mechanism keeps the goal.
    reach = score_sensitivity(claim.relation, claim.clip)
    sigma = sigma_for(claim.epsilon, claim.delta, claim.queries, reach)
    for _ in range(20):  # grid and smoothing cost a little more than the ideal
        mechanism = built(sigma)
        worst = Terms.of(mechanism, 1.0, claim.relation).worst_mu(claim.queries)
        if worst <= goal:
            break
        sigma *= worst / goal * (1 + 1e-9)
    return mechanism, sigma
