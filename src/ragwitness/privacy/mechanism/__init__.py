"""Retrieval that adds noise to every score and then selects, in integers from end to end."""

from ragwitness.privacy.mechanism.config import (
    MOST_SCALE,
    Mechanism,
    Sampler,
    mechanism_for,
    provable_mechanism,
)
from ragwitness.privacy.mechanism.release import (
    Selection,
    release,
    release_many,
    scores,
    select,
    slot_noise,
)
from ragwitness.privacy.mechanism.slots import SlotIndex, check_rows, quantise, slot_index

__all__ = [
    "MOST_SCALE",
    "Mechanism",
    "Sampler",
    "Selection",
    "SlotIndex",
    "check_rows",
    "mechanism_for",
    "provable_mechanism",
    "quantise",
    "release",
    "release_many",
    "scores",
    "select",
    "slot_index",
    "slot_noise",
]
