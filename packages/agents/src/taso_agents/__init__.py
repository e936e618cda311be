"""Reinforcement-learning agents for taso_gym."""
