"""Zero-knowledge proofs over a committed index: of its rows' norms, and of its answers.

What is here is the verifier's and needs the extra ``[verify]`` alone; the provider's side is
:mod:`.proving` (extra ``[zk]``).
"""
