"""Comparing models: on random inputs in onnxruntime, and rewritten sites against float64."""

from taso_gym.equivalence.baseline import Baseline
from taso_gym.equivalence.compare import TOLERANCE
from taso_gym.equivalence.report import OutputReport, Report
from taso_gym.equivalence.site import check_site
from taso_gym.equivalence.validation import validate

__all__ = ["TOLERANCE", "Baseline", "OutputReport", "Report", "check_site", "validate"]
