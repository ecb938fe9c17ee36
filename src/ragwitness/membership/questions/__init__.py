"""Questions about a document: who writes them, and how their answers are read."""

from ragwitness.membership.questions.base import OpenQuestion, Question, QuestionWriter, query_text
from ragwitness.membership.questions.cache import WrittenCache
from ragwitness.membership.questions.chat import ChatWriter
from ragwitness.membership.questions.outcome import Outcome, read_outcome
from ragwitness.membership.questions.rules import RuleWriter

__all__ = [
    "ChatWriter",
    "OpenQuestion",
    "Outcome",
    "Question",
    "QuestionWriter",
    "RuleWriter",
    "WrittenCache",
    "query_text",
    "read_outcome",
]
