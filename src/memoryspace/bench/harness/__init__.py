"""How an experiment is declared, run cell by cell, timed and resumed."""
