"""What is shown about a rule in rule notation."""

from taso_gym.rules.notation import parse_rules
from taso_substitutions.verify.levels import Evidence, assess


def evidence_of(text: str) -> Evidence:
    """Assess a rule that isn't false."""
    (rule,) = parse_rules(text)
    found = assess(rule, instances=8, draws=1)
    assert isinstance(found, Evidence), str(found)
    return found
