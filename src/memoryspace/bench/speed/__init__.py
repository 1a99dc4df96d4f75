"""What calls cost, beside something else on the same machine."""
