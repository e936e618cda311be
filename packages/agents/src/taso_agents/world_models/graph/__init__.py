"""The world model that dreams the graph itself, by what rewrites did in which surroundings."""
