"""Learning from runs: trajectories, tool calls, and the lessons derived from them."""
