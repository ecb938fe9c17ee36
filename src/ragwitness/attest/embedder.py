"""The commitment to what turns texts into vectors (R1; C_E of eq. 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.commitments import BLINDING_BYTES, commit_digests, draw_blinding
from ragwitness.crypto.encoding import parse_hex
from ragwitness.errors import InputError, VerificationError

__all__ = ["Embedder"]

_DOMAIN = "ragwitness/embedder/v1"
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Embedder:
    """The artifacts of an embedder by their digests, published with what opens the commitment.

    Attributes:
        artifacts: Name (weights, tokenizer, template, schema, …) to SHA-256 in hex.
        blinding: 32 bytes.
    """

    artifacts: Mapping[str, str]
    blinding: bytes

    @classmethod
    def of(cls, artifacts: Mapping[str, str]) -> Embedder:
        """Return artifacts with a fresh blinding."""
        return cls(dict(artifacts), draw_blinding())

    @property
    def commitment(self) -> str:
        """C_E, in hex.

        Raises:
            InputError: There is no artifact, or a digest is none.
        """
        return commit_digests(_DOMAIN, self.artifacts, self.blinding).hex()

    def encode(self) -> bytes:
        """Return the canonical JSON, ``embedder.json`` of a window."""
        return canonical({"artifacts": dict(self.artifacts), "blinding": self.blinding.hex()})

    @classmethod
    def parse(cls, data: bytes) -> Embedder:
        """Return the embedder of :meth:`encode`'s bytes.

        Raises:
            VerificationError: ``embedder.fields``, ``embedder.blinding``, ``embedder.digest``, or
                by :func:`~ragwitness.crypto.canonical.parse` ``embedder.*``.
        """
        value = parse(data, _MOST_BYTES, "embedder")
        named = isinstance(value, dict) and set(value) == {"artifacts", "blinding"}
        if not named or not isinstance(value["artifacts"], dict):
            raise VerificationError(
                "embedder.fields", "An embedder is stated by its artifacts and a blinding."
            )
        texts = [value["blinding"], *value["artifacts"].values()]
        if not all(isinstance(text, str) for text in texts):
            raise VerificationError("embedder.fields", "A digest of the embedder is no text.")
        blinding = parse_hex(value["blinding"], BLINDING_BYTES, "embedder.blinding")
        found = cls(value["artifacts"], blinding)
        try:
            found.commitment  # noqa: B018  # refuses what cannot be committed to
        except InputError as error:
            raise VerificationError("embedder.digest", error.message) from error
        return found
