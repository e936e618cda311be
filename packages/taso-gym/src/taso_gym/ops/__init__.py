"""The operators: one decorated function each, one file per family."""

from taso_gym.ops import (
    activations,
    attention,
    convolution,
    elementwise,
    linear,
    microsoft,
    microsoft_attention,
    movement,
    normalization,
    pooling,
    reduction,
    reshaping,
    resizing,
)
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.floating import FLOAT64, NUMPY, NumpyModule
from taso_gym.ops.modules import ArrayModule
from taso_gym.ops.operator import MICROSOFT, OPERATORS, PREFIXES, Operator, operator

__all__ = [
    "FLOAT64",
    "MICROSOFT",
    "NUMPY",
    "OPERATORS",
    "PREFIXES",
    "ArrayModule",
    "NumpyModule",
    "Operator",
    "activations",
    "attention",
    "convolution",
    "elementwise",
    "evaluate",
    "linear",
    "microsoft",
    "microsoft_attention",
    "movement",
    "normalization",
    "operator",
    "pooling",
    "reduction",
    "reshaping",
    "resizing",
]
