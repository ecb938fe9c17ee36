"""Twin (ours): the document's true values against values that could as well stand there."""

from ragwitness.membership.twin.config import CHOICE_PROMPT, TwinConfig
from ragwitness.membership.twin.places import Place, find_places
from ragwitness.membership.twin.probe import Twin
from ragwitness.membership.twin.ranks import rank_sum_p_value

__all__ = ["CHOICE_PROMPT", "Place", "Twin", "TwinConfig", "find_places", "rank_sum_p_value"]
