"""Equal graphs: from two terms with one fingerprint to the most general statement, and its rules."""
