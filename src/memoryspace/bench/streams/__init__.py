"""Streams of texts and queries, and the loop that plays them to a memory."""
