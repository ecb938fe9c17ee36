"""A RAG system we own: chunk, index, retrieve, prompt, generate; as a target or served."""
