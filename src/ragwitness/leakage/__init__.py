"""Extraction: what an attacker gets out of a RAG system, and how that is measured (SAGE, §4.3)."""
