"""Questions about a document: who writes them, and how their answers are read."""
