"""What was said becomes what is known: decided by a deriver, carried out once."""
