"""Training on real environments: PPO, its runs, checkpoints and curves."""
