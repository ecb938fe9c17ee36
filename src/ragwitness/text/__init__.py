"""Documents, their words, and the corpus that ships with the package."""

from ragwitness.text.documents import LoadedDocuments, Skipped, load_documents

__all__ = ["LoadedDocuments", "Skipped", "load_documents"]
