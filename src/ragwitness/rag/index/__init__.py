"""Finds the passages nearest to a query: by words (BM25) or by vectors, in one of five stores."""

from ragwitness.rag.index.base import Hit, Index, Metric, VectorStore
from ragwitness.rag.index.dense import DenseIndex
from ragwitness.rag.index.lexical import LexicalIndex
from ragwitness.rag.index.stores import STORES, check_store, open_store

__all__ = [
    "STORES",
    "DenseIndex",
    "Hit",
    "Index",
    "LexicalIndex",
    "Metric",
    "VectorStore",
    "check_store",
    "open_store",
]
