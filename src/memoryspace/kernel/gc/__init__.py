"""Garbage collection: which objects are freed, when a collection runs, and its report."""
