"""The real environment as agents play it: made by name, asked for sizes and states, recorded."""
