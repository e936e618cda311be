"""Acting in a world model: the environment, training in it, how far it is from reality, planning."""
