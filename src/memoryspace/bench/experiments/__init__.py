"""The prototype's experiments, each in its own setting and a fair one, and compaction."""
