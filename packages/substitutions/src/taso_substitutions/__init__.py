"""Discover, prove and prune graph substitutions for taso_gym."""
