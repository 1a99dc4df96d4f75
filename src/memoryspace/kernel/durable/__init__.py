"""Durability: journal, checkpoints, recovery, history, scrubbing, folder ownership."""
