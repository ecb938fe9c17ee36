"""Attest: a verdict on a window of noisy retrieval that a stranger checks without the index.

The provider's side: ``policy`` (what is promised), ``window`` (opened, recorded, closed),
``receipts`` (what an account keeps). Nothing here opens a connection.
"""
