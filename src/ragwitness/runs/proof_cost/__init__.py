"""What a proof costs: measured, extrapolated, and as published (collusion paper, Table 1)."""

from ragwitness.runs.proof_cost.costs import Case, Cost, measure_all
from ragwitness.runs.proof_cost.rows import CostRow, cost_rows
from ragwitness.runs.proof_cost.table import CostTable, TableRow, load_cost_table

__all__ = [
    "Case",
    "Cost",
    "CostRow",
    "CostTable",
    "TableRow",
    "cost_rows",
    "load_cost_table",
    "measure_all",
]
