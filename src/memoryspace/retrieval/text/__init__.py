"""Text analysis for search: texts to tokens (stemmed words), hashed in batches."""
