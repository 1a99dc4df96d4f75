"""Writing to a service: admission, changes with versions, erasure, quarantine, secrets."""
