"""The systems under test: our managers, baselines, other packages' memories, record backends."""
