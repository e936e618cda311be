"""What acts: networks over the candidates of a graph, or over what a world model knows of it."""
