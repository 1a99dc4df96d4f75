"""The harness: declares, runs, times and resumes experiments."""
