"""Leak measures over stored transcripts."""
