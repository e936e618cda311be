"""Showing that rules hold: proofs for all sizes, proofs at given sizes, and tests on sampled instances."""

from taso_substitutions.verify.certificates import certificates
from taso_substitutions.verify.certifying import certify, recheck
from taso_substitutions.verify.levels import Evidence, assess
from taso_substitutions.verify.testing import Counterexample, Passed, check_rule

__all__ = ["Counterexample", "Evidence", "Passed", "assess", "certificates", "certify", "check_rule", "recheck"]
