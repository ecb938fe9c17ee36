"""Leak measures over stored transcripts: the published counts beside the corrected ones."""
