"""Benchmarks of call costs, each next to an alternative on the same machine."""
