"""Statistics: ROC and intervals, conformal p-values and their correction."""

from ragwitness.stats.conformal import benjamini_hochberg, conformal_p_values, documents_needed
from ragwitness.stats.evaluation import Evaluation, Rate, auc, evaluate, roc_curve, tpr_at_fpr
from ragwitness.stats.intervals import auc_interval, bootstrap_interval, proportion_interval
from ragwitness.stats.power import expected_power, needed_together

__all__ = [
    "Evaluation",
    "Rate",
    "auc",
    "auc_interval",
    "benjamini_hochberg",
    "bootstrap_interval",
    "conformal_p_values",
    "documents_needed",
    "evaluate",
    "expected_power",
    "needed_together",
    "proportion_interval",
    "roc_curve",
    "tpr_at_fpr",
]
