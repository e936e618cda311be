"""Episodes: collecting, keeping, reading and writing them."""
