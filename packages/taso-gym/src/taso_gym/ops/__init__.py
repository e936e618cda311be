"""The operators: one decorated function each, one file per family."""

from taso_gym.ops import activations, elementwise, linear
from taso_gym.ops.evaluate import evaluate
from taso_gym.ops.modules import FLOAT64, NUMPY, ArrayModule, NumpyModule
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
    "elementwise",
    "evaluate",
    "linear",
    "operator",
]
