"""Zero-knowledge proofs over a committed index: of its rows' norms, and of its answers.

One argument on committed bits (:mod:`.argument`) over a public ceremony's powers (:mod:`.shape`).
``prover``, ``domain`` and ``prove_*`` are the provider's side; a verifier loads none of them.
"""
