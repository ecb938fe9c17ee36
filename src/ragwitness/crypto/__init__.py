"""Cryptography for a stranger's checks: hashes, commitments, a log, a map, signatures, proofs.

Imports neither targets nor models nor an HTTP client; verifying needs no network and no extra.
Every refusal of evidence is a :class:`~ragwitness.core.errors.VerificationError`, which names its
check.
"""
