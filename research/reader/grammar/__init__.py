"""Grammars of the reader's synthetic documents: sentence patterns and the words that fill them."""
