"""What an agent sees: a rewrite state as padded arrays with masks, patched from step to step."""

from taso_gym.observation.features import EDGE_FEATURES, NODE_FEATURES, OPERATOR_NUMBERS, Features, Scale
from taso_gym.observation.layout import EXTRA_VIEWS, GLOBAL_FEATURES, Layout, Observation, size_bytes
from taso_gym.observation.observer import Observer
from taso_gym.observation.rows import count_rows

__all__ = [
    "EDGE_FEATURES",
    "EXTRA_VIEWS",
    "GLOBAL_FEATURES",
    "NODE_FEATURES",
    "OPERATOR_NUMBERS",
    "Features",
    "Layout",
    "Observation",
    "Observer",
    "Scale",
    "count_rows",
    "size_bytes",
]
