"""The services, at the runtime's paths."""
