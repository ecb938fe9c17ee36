"""Assertions for test suites, and the pytest plug-in."""
