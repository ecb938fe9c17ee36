"""Differential privacy of retrieval: noise, its accounting, and a running meter of the spending.

Imports neither targets nor models nor an HTTP client, so that a verifier, an attack and a service
share one definition of the mechanism and of its price.
"""
