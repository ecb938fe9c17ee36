"""Signed texts of C2SP: notes, checkpoints, cosignatures, and the proof that travels alone."""
