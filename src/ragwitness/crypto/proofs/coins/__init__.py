"""COINS: bits of committed numbers, proved without a circuit (docs/design/noise.md)."""
