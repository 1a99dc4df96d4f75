"""Durability: journal, checkpoints, recovery, points in time, and who owns a folder."""
