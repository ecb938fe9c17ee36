"""The membership methods, one module for each paper, and what they share."""
