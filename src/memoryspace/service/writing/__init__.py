"""Writing to a service: admission, versioned changes, erasure, quarantine and secrets."""
