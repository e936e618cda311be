"""The operators: one decorated function each, one file per family."""

from taso_gym.ops import elementwise, linear
from taso_gym.ops.operator import MICROSOFT, OPERATORS, PREFIXES, Operator, operator

__all__ = ["MICROSOFT", "OPERATORS", "PREFIXES", "Operator", "elementwise", "linear", "operator"]
