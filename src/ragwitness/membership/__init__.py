"""Membership audits: is a document in the database behind a RAG system?"""
