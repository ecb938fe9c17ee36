"""Differentially private synthesis: texts that depend on the records by noisy votes alone."""
