"""``taso-gen-subst explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from taso_gym.console import console
from taso_gym.errors import TasoError
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.rule import AllOutputs, Call, Constant, Output, Root, Rule
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.unparse import unparse, unparse_expr, unparse_term
from taso_substitutions.verify.levels import Symbolic, assess
from taso_substitutions.verify.normal.analytic import AXIOMS
from taso_substitutions.verify.prover import Proof, prove
from taso_substitutions.verify.sampling import sample_instances
from taso_substitutions.verify.trial import Counterexample


def explain(
    rule: Annotated[str, typer.Argument(help="Name of a rule in SOURCE, or a rule: 'name: left => right if …'.")],
    source: Annotated[str, typer.Option(help="A rule set of the package, or a rule file.")] = "basis",
) -> None:
    """Print both sides of a rule as graphs, what is needed, and its proof or a counterexample."""
    chosen = parse_rules(rule, "RULE") if ":" in rule else _named(rule, source)
    for one in chosen:
        console.print("\n".join(lines(one)), markup=False, highlight=False, soft_wrap=True)


def _named(name: str, source: str) -> list[Rule]:
    rules = RuleSet.load(source, numerics="fast")
    return [rules[rules.index(name)]]


def lines(rule: Rule) -> list[str]:
    """Return the explanation of a rule."""
    text = [unparse(rule), "", "left side", *drawing(rule.lhs), "", "right side", *drawing(rule.rhs), ""]
    text += [f"needs {unparse_expr(c)}" for c in rule.conditions] or [
        "needs no more than that the left side is well-typed"
    ]
    found = assess(rule)
    if isinstance(found, Counterexample):
        return [*text, "", str(found)]
    text += ["", f"{found.status}, {rule.numerics}: {found.tested.tests} tests over {found.tested.instances} instances"]
    text += [f"uses {axiom}: {AXIOMS[axiom]}" for axiom in found.axioms]
    if found.bounded:
        text.append(f"{found.bounded.solver}: equal in {found.bounded.elements} elements")
    return [*text, *_proof(rule, found.symbolic)]


def _proof(rule: Rule, shown: Symbolic | None) -> list[str]:
    """Return what the size-generic prover says about the first instance, and whether that is all."""
    try:
        (instance,) = sample_instances(rule, 1, 0)
        proof = prove(rule, instance.binding())
    except TasoError as error:
        return [f"no proof for all sizes: {error}"]
    text = [f"{_scope(proof, shown)}, from the example {instance}: normal form {proof.digest}"]
    text += [f"  from the typing: {fact}" for fact in proof.typing]
    text += [f"  lacking: {fact}" for fact in proof.lacking]
    return text + [f"  a number: {fact}" for fact in proof.fixed]


def _scope(proof: Proof, shown: Symbolic | None) -> str:
    """Return what a proof is for."""
    if not proof.complete:
        return "no proof for all sizes, as it lacks what follows"
    if shown is None:
        return "proof of some instances only"
    numbers = sorted({*proof.numbers, *shown.numbers})
    return "proof for all sizes" + (f" but numbers that instances have ({', '.join(numbers)})" if numbers else "")


def drawing(roots: tuple[Root, ...]) -> list[str]:
    """Return the graph of a side as text: an operator a line, operands first; what is used twice stands once."""
    numbers: dict[Call, int] = {}
    text: list[str] = []

    def show(term: Root) -> str:
        if isinstance(term, Output | AllOutputs):
            place = show(term.call)
            return f"{place}[{term.index}]" if isinstance(term, Output) else f"*{place}"
        if not isinstance(term, Call):
            return unparse_expr(term.value) if isinstance(term, Constant) else unparse_term(term)
        if term not in numbers:
            operands = ", ".join(map(show, term.args))
            attrs = "".join(f"  {k}={unparse_expr(v)}" for k, v in term.attrs)
            numbers[term] = len(numbers) + 1
            others = f"  **{term.others}" if term.others else ""
            text.append(f"  %{numbers[term]} = {term.op}({operands}){attrs}{others}")
        return f"%{numbers[term]}"

    results = [show(root) for root in roots]
    return [*text, f"  gives {', '.join(results)}"]
