"""What a search sees of a text: its words, without their endings, hashed in batches."""
