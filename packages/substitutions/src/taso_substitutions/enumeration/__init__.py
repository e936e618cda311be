"""Every small graph over a fragment, each once, known by its fingerprint."""
