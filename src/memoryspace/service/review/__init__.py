"""Review: derived facts that wait for approval, and the memory of those that were rejected."""
