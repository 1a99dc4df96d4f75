"""Derivation: derivers turn stored messages into facts, lessons and tool guidelines."""
