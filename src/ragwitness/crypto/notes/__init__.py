"""Signed texts of C2SP: notes, checkpoints, cosignatures, and the proof that travels alone."""

from ragwitness.crypto.notes.checkpoint import Checkpoint
from ragwitness.crypto.notes.policy import Policy, SignedCheckpoint, open_checkpoint
from ragwitness.crypto.notes.proof_file import LogProof, open_proof
from ragwitness.crypto.notes.signed import Note, Signature
from ragwitness.crypto.notes.signing import sign_checkpoint
from ragwitness.crypto.notes.witness import cosign, verify_extension

__all__ = [
    "Checkpoint",
    "LogProof",
    "Note",
    "Policy",
    "Signature",
    "SignedCheckpoint",
    "cosign",
    "open_checkpoint",
    "open_proof",
    "sign_checkpoint",
    "verify_extension",
]
