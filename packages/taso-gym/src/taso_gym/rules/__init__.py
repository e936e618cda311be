"""Substitution rules: their notation, their matches in a graph, and the rewrites that they stand for."""
