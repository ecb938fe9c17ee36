"""Ragwitness."""
