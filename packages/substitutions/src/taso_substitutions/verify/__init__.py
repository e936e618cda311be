"""Showing that rules hold: proofs for all sizes, proofs at given sizes, and tests on sampled instances."""

from taso_substitutions.verify.certificates import certify
from taso_substitutions.verify.testing import Counterexample, Passed, check_rule

__all__ = ["Counterexample", "Passed", "certify", "check_rule"]
