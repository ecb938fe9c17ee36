"""S-RAG (ACL 2025): membership audit from next-word probabilities."""

from ragwitness.membership.srag.classifier import (
    AuditClassifier,
    train_autogluon,
    train_classifier,
)
from ragwitness.membership.srag.config import AUDIT_PROMPT, SRagConfig
from ragwitness.membership.srag.probe import SRag
from ragwitness.membership.srag.shadow import (
    Shadow,
    ShadowConfig,
    Split,
    build_shadow,
    split_auxiliary,
)

__all__ = [
    "AUDIT_PROMPT",
    "AuditClassifier",
    "SRag",
    "SRagConfig",
    "Shadow",
    "ShadowConfig",
    "Split",
    "build_shadow",
    "split_auxiliary",
    "train_autogluon",
    "train_classifier",
]
