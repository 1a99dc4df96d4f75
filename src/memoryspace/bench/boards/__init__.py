"""Recall, and answers from it, on public data sets."""
