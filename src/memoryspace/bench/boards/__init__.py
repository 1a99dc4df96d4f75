"""Boards: recall, and answers based on it, on public data sets."""
