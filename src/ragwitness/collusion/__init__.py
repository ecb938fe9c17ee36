"""Attacks by accounts that pool their answers, and estimates of how many do.

Vectors are handed in; nothing here embeds, retrieves or opens a connection.
"""
