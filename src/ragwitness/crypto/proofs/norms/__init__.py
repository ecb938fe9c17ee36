"""Every row of a committed index has a norm of at most S: the proof, once per window.

One step, one file: ``projection`` (entries are small), ``polynomials`` (norms and projections as
one constant term), ``proof`` (the bytes), ``prove`` and ``verify``; ``limbs`` is arithmetic. Why
this shows what it says, and nothing else: docs/design/norms.md.
"""
