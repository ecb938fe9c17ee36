"""Statistics: ROC and intervals, conformal p-values and their correction."""
