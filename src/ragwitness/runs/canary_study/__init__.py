"""The controlled study of canaries as a run: policies in processes, one journal (2604.22191)."""

from ragwitness.runs.canary_study.run import run_study
from ragwitness.runs.canary_study.table import (
    StudyCase,
    StudyTable,
    WorldSpec,
    load_study_table,
)

__all__ = [
    "StudyCase",
    "StudyTable",
    "WorldSpec",
    "load_study_table",
    "run_study",
]
