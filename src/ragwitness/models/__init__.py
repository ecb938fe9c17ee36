"""The auditor's own models: language models that score and generate, and embedders."""
