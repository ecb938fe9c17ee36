"""The relations that are proved, as constraint systems (docs/design/circuits.md)."""
