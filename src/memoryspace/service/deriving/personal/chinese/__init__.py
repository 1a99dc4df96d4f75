"""Chinese: the clauses, matters and values that facts are read from."""
