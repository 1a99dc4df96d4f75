"""Quality of what is stored, found and derived, on data with known answers."""
