"""Finds the passages nearest to a query: by words (BM25) or by vectors."""
