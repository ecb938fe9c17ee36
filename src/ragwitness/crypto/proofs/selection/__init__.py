"""LINK: an answer names the highest noisy scores of the committed index (docs/design/link.md)."""
