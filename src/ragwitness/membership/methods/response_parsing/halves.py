"""A document in two halves: the first is asked with, the second is what a member's answer says."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from ragwitness.core.types import Answer, Query
from ragwitness.membership.methods.response_parsing.replies import with_room
from ragwitness.models.base import LanguageModel
from ragwitness.text.words import Word, core, split_words

_BEFORE = 4  # words shown before a deciding word


@dataclass(frozen=True, slots=True)
class Halves:
    """A document cut in the middle.

    Attributes:
        text: Both halves, after the cut.
        first: The first half.
        second: The second half.
        cut: Words left out at the end of a long document.
    """

    text: str
    first: str
    second: str
    cut: int


def cut_words(text: str, most: int) -> tuple[str, int]:
    """Keep the first ``most`` words; return them and how many were left out."""
    words = split_words(text)
    if len(words) <= most:
        return text.strip(), 0
    return text[words[0].start : words[most - 1].end], len(words) - most


def halve(text: str, max_words: int, min_words: int) -> Halves | None:
    """Cut a document after half of its words; None where it has fewer than ``min_words``."""
    kept, cut = cut_words(text, max_words)
    # The length counts words with a letter or digit; the cut counts all, so that halves are alike.
    words = split_words(kept)
    if sum(bool(core(word.text)) for word in words) < min_words:
        return None
    # S2MIA cuts a document in the middle: the first half is the query (Li et al. 2024).
    middle = words[len(words) // 2].start
    return Halves(kept, kept[:middle].rstrip(), kept[middle:], cut)


def ask_on(
    halves: Halves, prompt: str, proxy: LanguageModel, room: int, top_logprobs: int, *, once: bool
) -> Generator[list[Query], list[Answer], Answer]:
    """Ask for the second half of a document.

    Args:
        halves: The document.
        prompt: The question, with the first half in it.
        proxy: Counts tokens.
        room: Tokens beyond the proxy's count, for targets whose tokenizer counts more.
        top_logprobs: Alternatives asked for per token.
        once: As published; else a target that first says the first half again gets room to go on.
    """
    query = Query(prompt, proxy.count_tokens(halves.second) + room, top_logprobs=top_logprobs)
    if once:
        (answer,) = yield [query]
    else:
        most = [proxy.count_tokens(halves.first) + room]
        (answer,) = yield from with_room([query], [halves.first], most)
    return answer


def words_before(text: str, words: Sequence[Word], number: int) -> str:
    """Return the few words before word ``number`` of a text, to be shown with it as evidence."""
    return text[words[max(0, number - _BEFORE)].start : words[number].start].strip()
