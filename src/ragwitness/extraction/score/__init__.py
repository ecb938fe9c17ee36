"""Leak measures over stored transcripts: the published counts beside the corrected ones."""

from ragwitness.extraction.score.ledger import Secret, contacts_of, find_secrets
from ragwitness.extraction.score.table import LeakPlan, Measure, measure_leaks

__all__ = ["LeakPlan", "Measure", "Secret", "contacts_of", "find_secrets", "measure_leaks"]
