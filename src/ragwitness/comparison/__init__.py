"""Comparison of variants of a corpus: what each keeps, what it leaks, what it costs."""
