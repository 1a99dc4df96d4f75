"""The message schema, at the runtime's paths."""
