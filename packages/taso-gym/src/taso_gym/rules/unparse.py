"""Writing a rule as its line, such that reading it gives the same rule."""

from __future__ import annotations

from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Root, Rule, Var, kept

_PRECEDENCE = {
    **dict.fromkeys(["or"], 1),
    **dict.fromkeys(["and"], 2),
    **dict.fromkeys(["not"], 3),
    **dict.fromkeys(["==", "!=", "<", "<=", ">", ">=", "in", "not in"], 4),
    **dict.fromkeys(["+", "-"], 5),
    **dict.fromkeys(["*", "/", "//", "%"], 6),
    **dict.fromkeys(["**"], 8),
}
_NEGATION, _ATOM = 7, 9


def unparse(rule: Rule) -> str:
    """Return the line of one direction of a rule: ``name [tags]: left => right if conditions``."""
    tags = [rule.numerics] * (rule.numerics != "reassociate") + ["any"] * rule.any_type
    suffix = f" [{' '.join(tags)}]" if tags else ""
    return f"{rule.name}{suffix}: {unparse_body(rule)}"


@kept
def unparse_body(rule: Rule) -> str:
    """Return what a rule says, without its name and tags."""
    sides = f"{', '.join(map(unparse_term, rule.lhs))} => {', '.join(map(unparse_term, rule.rhs))}"
    if not rule.conditions:
        return sides
    least = _PRECEDENCE["not"] if len(rule.conditions) > 1 else 0
    return f"{sides} if {' and '.join(unparse_expr(c, least) for c in rule.conditions)}"


def unparse_term(term: Root) -> str:
    """Return the text of a term."""
    match term:
        case Var(name):
            return name
        case Absent():
            return "_"
        case Rest(name):
            return f"*{name}"
        case Constant(value):
            return unparse_expr(value)
        case Output(call, index):
            return f"{unparse_term(call)}[{index}]"
        case AllOutputs(call):
            return f"*{unparse_term(call)}"
        case Call(op, args, attrs, others):
            operands = [unparse_term(arg) for arg in args] + [f"{k}={unparse_expr(v)}" for k, v in attrs]
            return f"{op}({', '.join(operands + ([f'**{others}'] if others else []))})"


def unparse_expr(expr: Expr, least: int = 0) -> str:
    """Return the text of an expression, in brackets if it binds less tightly than ``least``."""
    text, binding = _write(expr)
    return f"({text})" if binding < least else text


def _write(expr: Expr) -> tuple[str, int]:
    args = expr.args
    match expr.kind:
        case "number" | "string" | "none":
            return repr(expr.value).replace("inf", "1e999") if expr.kind == "number" else repr(expr.value), _ATOM
        case "name":
            return str(expr.value), _ATOM
        case "list":
            return f"[{', '.join(map(unparse_expr, args))}]", _ATOM
        case "field":
            return f"{args[0].value}.{expr.value}", _ATOM
        case "call":
            return f"{expr.value}({', '.join(map(unparse_expr, args))})", _ATOM
        case "[]":
            return f"{unparse_expr(args[0], _ATOM)}[{unparse_expr(args[1])}]", _ATOM
        case "[:]":
            begin, end = ("" if e.kind == "none" else unparse_expr(e) for e in args[1:])
            return f"{unparse_expr(args[0], _ATOM)}[{begin}:{end}]", _ATOM
        case "not":
            return f"not {unparse_expr(args[0], 3)}", 3
        case "-" if len(args) == 1:
            return f"-{unparse_expr(args[0], _NEGATION)}", _NEGATION
        case kind:
            level = _PRECEDENCE[kind]
            # Only the left operand of + - * / // % may be as loose; and/or/comparisons would be read as one chain.
            loose = kind in ("+", "-", "*", "/", "//", "%")
            inner = [unparse_expr(a, level + (i > 0 or not loose)) for i, a in enumerate(args)]
            return f" {kind} ".join(inner), level
