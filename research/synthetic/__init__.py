"""SAGE's tables: the ways of making synthetic data as published, and Wiki-PII."""
