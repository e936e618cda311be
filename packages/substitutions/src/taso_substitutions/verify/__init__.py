"""Showing that rules hold: proofs for all sizes, proofs at given sizes, and tests on sampled instances."""

from taso_substitutions.verify.certificates import certificates
from taso_substitutions.verify.certifying import certify, recheck
from taso_substitutions.verify.levels import Evidence, assess
from taso_substitutions.verify.testing import Passed, check_rule
from taso_substitutions.verify.trial import Counterexample

__all__ = ["Counterexample", "Evidence", "Passed", "assess", "certificates", "certify", "check_rule", "recheck"]
