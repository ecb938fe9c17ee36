"""The p-value of one slot of a canary."""

from ragwitness.canary.rank_test import SlotScores, rank_of


def rank_p_value(slot: SlotScores) -> float:
    """Return rank / M; at least 1 / M."""
    return rank_of(slot) / slot.scores.size
