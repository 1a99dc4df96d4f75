"""Learning from runs: trajectories, tool calls, and the lessons drawn from them."""
