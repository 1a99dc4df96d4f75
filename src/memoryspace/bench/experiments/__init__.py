"""The prototype's experiments, each with a fair setting beside its own, and compaction."""
