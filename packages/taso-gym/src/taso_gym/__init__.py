"""Optimise ONNX graphs with proven substitutions: a library, a command and a Gymnasium environment.

Importing the package registers the environments (``TasoGraph-BERT-v0``, …); everything else is loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taso_gym.registration import register_all

if TYPE_CHECKING:
    from taso_gym.cost_model import Cost
    from taso_gym.env import TasoGraphEnv
    from taso_gym.equivalence import Report, validate
    from taso_gym.errors import TasoError
    from taso_gym.graph import Graph
    from taso_gym.onnx_io import load, save
    from taso_gym.optimizer import optimize
    from taso_gym.registration import make
    from taso_gym.replay import Replay
    from taso_gym.result import Result
    from taso_gym.rules.ruleset import RuleSet
    from taso_gym.rules.state import Match, RewriteState

__all__ = [
    "Cost",
    "Graph",
    "Match",
    "Replay",
    "Report",
    "Result",
    "RewriteState",
    "RuleSet",
    "TasoError",
    "TasoGraphEnv",
    "load",
    "make",
    "optimize",
    "save",
    "validate",
]

_HOMES = {
    "Cost": "cost_model",
    "Graph": "graph",
    "Match": "rules.state",
    "Replay": "replay",
    "Report": "equivalence",
    "Result": "result",
    "RewriteState": "rules.state",
    "RuleSet": "rules.ruleset",
    "TasoError": "errors",
    "TasoGraphEnv": "env",
    "load": "onnx_io",
    "make": "registration",
    "optimize": "optimizer",
    "save": "onnx_io",
    "validate": "equivalence",
}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_all()
