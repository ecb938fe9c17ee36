"""Defenses at query time, and their cost: each changes one step of a RAG system."""
