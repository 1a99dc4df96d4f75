"""Figures as tables, plots, pages and documents."""
