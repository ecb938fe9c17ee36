"""Splits documents into passages at words, every passage a slice of its document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Message
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.config import PromptTemplate
from ragwitness.text.words import split_words

# Where nothing else separates words (Thai, encoded data), runs are cut here.
_LONGEST_WORD = 100


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a document, verbatim.

    Attributes:
        document: Id of the document it comes from.
        start: First character of it in the document.
        end: One past its last character.
        text: ``document.text[start:end]``.
        key: Text that the index searches in its place; None for the passage itself.
    """

    document: str
    start: int
    end: int
    text: str
    key: str | None = None


def chunk_document(document: Document, words: int = 200, overlap: int = 20) -> list[Passage]:
    """Split one document into passages of at most ``words`` words.

    Args:
        document: The document to split; a blank one gives no passage.
        words: Longest passage, in words as :func:`word_spans` sees them.
        overlap: Words that a passage repeats from the one before it.

    Raises:
        InputError: ``words`` is not positive or ``overlap`` is not in ``[0, words)``.
    """
    if words < 1 or not 0 <= overlap < words:
        raise InputError(
            f"Passages of {words} words with an overlap of {overlap} cannot be cut.",
            "Give at least 1 word per passage and an overlap smaller than that.",
        )
    spans = word_spans(document.text)
    passages: list[Passage] = []
    # Each passage begins ``overlap`` words before the end of the one before it.
    for first in range(0, len(spans), words - overlap):
        last = min(first + words, len(spans))
        start, end = spans[first][0], spans[last - 1][1]
        passages.append(Passage(document.id, start, end, document.text[start:end]))
        if last == len(spans):
            break
    return passages


def chunk_documents(
    documents: Iterable[Document], words: int = 200, overlap: int = 20
) -> list[Passage]:
    """Split every document; see :func:`chunk_document`."""
    return [p for d in documents for p in chunk_document(d, words, overlap)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character range of each word.

    Characters of unspaced scripts stand alone (:func:`~ragwitness.text.words.split_words`),
    and no range is longer than 100 characters: a long run is several.
    """
    return [
        (start, min(start + _LONGEST_WORD, word.end))
        for word in split_words(text)
        for start in range(word.start, word.end, _LONGEST_WORD)
    ]


# Fitting passages, question and answer into the context of the generator.

# A text's tokens may differ by a few inside a conversation.
_SLACK = 8


def fit_passages(passages: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Shorten a ranked list of passages until it fits.

    Whole passages go first, the lowest-ranked before the others. The last one is cut at a word, and
    goes too where not one word of it fits.

    Args:
        passages: Best first.
        fits: Whether the prompt over these passages can be read.
    """
    fitting = list(passages)
    while len(fitting) > 1 and not fits(fitting):
        fitting.pop()
    if not fitting or fits(fitting):
        return fitting
    # One passage remains, and it alone is too long.
    beginning = _cut_at_word(fitting[0], lambda text: fits([text]))
    return [beginning] if beginning else []


def _cut_at_word(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of whole words that fits; empty where there is none."""
    ends = [end for _, end in word_spans(text)]
    low, high = 0, len(ends) - 1
    while low < high:  # invariant: the first `low` words fit, `high + 1` and more do not
        middle = (low + high + 1) // 2
        if fits(text[: ends[middle - 1]]):
            low = middle
        else:
            high = middle - 1
    return text[: ends[low - 1]] if low else ""


def chat_overhead(generator: LanguageModel, template: PromptTemplate) -> int:
    """Return the tokens of a conversation beyond its texts: role markers, end tokens, a date."""
    word = "a"
    shape = template.messages((), word)
    shortest = ChatPrompt(tuple(Message(message.role, word) for message in shape))
    # One token is written; a model without chat fails here, before any question.
    read = generator.generate([shortest], max_tokens=1)[0].prompt_tokens
    return max(0, read - len(shape) * generator.count_tokens(word)) + _SLACK
