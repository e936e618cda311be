"""Networks that policies and world models are built of."""
