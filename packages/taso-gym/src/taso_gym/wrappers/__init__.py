"""Other views of the same task, for libraries and policies that want another action or observation space."""

from taso_gym.wrappers.actions import CandidateAction, FlattenAction
from taso_gym.wrappers.graph_space import ToGraphSpace
from taso_gym.wrappers.mask_in_obs import MaskInObs
from taso_gym.wrappers.two_stage import TwoStage

__all__ = ["WRAPPERS", "CandidateAction", "FlattenAction", "MaskInObs", "ToGraphSpace", "TwoStage"]

WRAPPERS = {
    "FlattenAction": FlattenAction,
    "CandidateAction": CandidateAction,
    "TwoStage": TwoStage,
    "MaskInObs": MaskInObs,
    "ToGraphSpace": ToGraphSpace,
}
"""Name -> class."""
