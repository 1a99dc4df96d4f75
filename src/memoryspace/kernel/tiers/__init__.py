"""Tiers: a hot heap over a cold storage engine, and how objects move between them."""
