"""Discover, prove and prune graph substitutions for taso_gym."""

__version__ = "0.1.0"
