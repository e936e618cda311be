"""A whole generation: the search of each fragment, and the resumable stages over all of them."""
