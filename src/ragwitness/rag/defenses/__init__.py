"""Defenses at query time, and what they cost: each changes one step of a RAG system of ours."""
