"""System studies: size, workloads, crashes, concurrency, record backends."""
