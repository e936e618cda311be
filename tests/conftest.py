"""Settings that all tests share."""

import os

from hypothesis import settings

# The machine's load says nothing about the code, so no deadlines; a red run in CI must be red again at home.
settings.register_profile("default", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=30, deadline=None, derandomize=True)
settings.register_profile("fuzz", max_examples=2000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
