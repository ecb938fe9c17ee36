"""Defenses at query time, and what they cost: each changes one step of a RAG system of ours."""

from ragwitness.defenses.base import Chain, Defense, NoDefense, chain, defend, undefended
from ragwitness.defenses.cost import (
    AnswerCost,
    DefenseCost,
    RetrievalCost,
    benign_cost,
    compare_answers,
    word_f1,
)
from ragwitness.defenses.loading import DEFENSE_FORMS, load_defense
from ragwitness.defenses.mirabel import Mirabel, hide_threshold
from ragwitness.defenses.prompt import PromptModification
from ragwitness.defenses.questions import BenignQuestion, QuestionKind, benign_questions
from ragwitness.defenses.rerank import Rerank
from ragwitness.defenses.rewriting import (
    PARAPHRASE,
    REWRITE,
    QueryRewriting,
    RewritingConfig,
    paraphrase,
    rewrite,
)
from ragwitness.defenses.rules import rule_rewrite
from ragwitness.defenses.summarize import Summarize
from ragwitness.defenses.threshold import DistanceThreshold, calibrate_threshold

__all__ = [
    "DEFENSE_FORMS",
    "PARAPHRASE",
    "REWRITE",
    "AnswerCost",
    "BenignQuestion",
    "Chain",
    "Defense",
    "DefenseCost",
    "DistanceThreshold",
    "Mirabel",
    "NoDefense",
    "PromptModification",
    "QueryRewriting",
    "QuestionKind",
    "Rerank",
    "RetrievalCost",
    "RewritingConfig",
    "Summarize",
    "benign_cost",
    "benign_questions",
    "calibrate_threshold",
    "chain",
    "compare_answers",
    "defend",
    "hide_threshold",
    "load_defense",
    "paraphrase",
    "rewrite",
    "rule_rewrite",
    "undefended",
    "word_f1",
]
