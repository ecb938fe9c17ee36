"""Marks: words of documents are drawn by lot before they are shared, and asked about later."""
