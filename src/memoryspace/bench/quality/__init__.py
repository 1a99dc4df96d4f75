"""How good what is kept, found and derived is, on data with known answers."""
