"""English rules for fact extraction: clauses, matters and values."""
