"""What the services are made with, at the runtime's paths."""
