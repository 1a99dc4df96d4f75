"""Garbage collection: which objects are condemned, when a cycle runs, and what it reports."""
