"""Streams of texts and queries, and how a memory is played through one."""
