"""What rules derive: closure over all applications of a fragment, and equality saturation."""
