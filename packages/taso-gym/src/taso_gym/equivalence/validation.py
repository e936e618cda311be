"""Whether two models compute the same, on random inputs, in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path
from typing import cast

import numpy as np
from onnx import ModelProto

from taso_gym.batch import for_one_sample
from taso_gym.checks import check_finite, check_seed, check_sizes, check_whole, items_of
from taso_gym.equivalence.compare import Difference, Value, compare, compare_floats, groups_of, worst
from taso_gym.equivalence.drawn import Draw, run_on_drawn, run_on_given
from taso_gym.equivalence.logits import Logits, logits_of
from taso_gym.equivalence.report import FLOAT32_ONLY, OutputReport, Report
from taso_gym.equivalence.runtime import Feeds
from taso_gym.equivalence.site import check_site, operations
from taso_gym.equivalence.subject import Subject, expect_one_interface, subject
from taso_gym.errors import EquivalenceError, ModelError, OptionError
from taso_gym.graph import Graph
from taso_gym.onnx_io.reference import run_graph
from taso_gym.ops.floating import FLOAT64

REFERENCE_BYTES = 200_000_000
"""Models with at most so many bytes of weights are run in float64, too."""
MOST_FLOPS = 200_000_000_000
"""Work above which a model whose outputs don't differ isn't computed in float64, nor are the rewritten parts together:
ten seconds and more."""
NOT_WORSE = 4.0
"""The second model only rounds differently if its error against float64 is at most so many times the first's."""
CREDIBLE = 100.0
"""A reference is believed if the first model is within so many tolerances of it."""


def validate(
    a: Graph | ModelProto | str | Path,
    b: Graph | ModelProto | str | Path,
    *,
    inputs: Sequence[Feeds] | None = None,
    draws: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    dims: Mapping[str, int] | None = None,
    rewritten: tuple[Graph, Graph] | None = None,
) -> Report:
    """Compare two models on inputs drawn for their types and, for open dimensions, of several sizes.

    Both run in onnxruntime at its default optimisation level. Floating-point outputs may differ by a part of their
    largest magnitude (`taso_gym.equivalence.compare.TOLERANCE`), all others not at all; where the weights take at most
    200 MB, the first model is also computed in float64: that tells rounding from an error. Where outputs don't differ,
    this is of one sample of a batch, if samples are known apart, and of at most 200 GFLOP. Where both compute with
    whole numbers without rounding (`taso_gym.equivalence.exact`), all draws but the last, at least one, are of such,
    and the outputs must be the same there. The report says which it was, and which outputs don't depend on what was
    drawn. Where both end in a Softmax, its logits are compared, too. Inputs that have a default are given another
    value in one of several draws.

    Args:
        a: a graph, model or file: the one that is right.
        b: another one with the same inputs and outputs; it may have further inputs that have a default.
        inputs: values by input name, one mapping for each draw, instead of random ones.
        draws: how often random inputs are drawn.
        seed: of the draws.
        tolerance: for floating-point outputs, instead of the one of their type.
        dims: sizes of open dimensions of ``a`` for the first draw; the others are of other sizes, and may fail.
        rewritten: the graphs of the two, where the second was made of the first by rewriting; the parts in which they
            differ are computed in float64 where the whole can't be.

    Raises:
        OptionError: fewer than one draw, no inputs, an argument of a wrong kind, or ``a`` has no dimension of a name in
            ``dims``.
        EquivalenceError: inputs or outputs don't have the same names and types, or ``a`` runs on none of the inputs.
        ModelError: a model can't be read.
        MissingPackageError: onnxruntime isn't installed.
    """
    called = "for each draw a mapping from input names to values"
    given = None if inputs is None else cast("Sequence[Feeds]", items_of(inputs, Mapping, called))
    check_whole(draws=draws)
    check_seed(seed)
    check_finite(tolerance=0.0 if tolerance is None else tolerance)
    check_sizes(dims, 1)
    if draws < 1 or given == ():
        raise OptionError(f"expected at least one draw, found {draws if given is None else 0}")
    with ExitStack() as stack:
        first, second = subject(a, stack, dims), subject(b, stack)
        expect_one_interface(first.graph, second.graph)
        if given is not None:
            drawn = run_on_given(first, given)
        else:
            drawn = run_on_drawn(first, [first.graph, second.graph] if tolerance is None else [], draws, seed)
        found = second.run([d.feeds for d in drawn])
    labels = tuple(" ".join(f"{k}={v}" for k, v in sorted(d.sizes.items())) for d in drawn)
    outputs: list[list[Value]] = []
    for result in found:
        if isinstance(result, str):
            return Report((), labels, f"{FLOAT32_ONLY}: there is nothing to compare", f"it doesn't run: {result}")
        outputs.append(result)
    report = report_on(first, drawn, outputs, labels, partial(reference_of, first, drawn), tolerance)
    if logits := logits_of(first.graph, second.graph):
        report = _with_logits(report, logits, drawn[0].feeds, tolerance)
    weak = report.is_float32_only or any(o.is_constant for o in report.outputs)
    return _with_sites(report, *rewritten) if rewritten and weak else report


def _with_logits(report: Report, logits: Logits, feeds: Feeds, tolerance: float | None) -> Report:
    """Return a report that also tells how far logits are apart."""
    found = validate(logits.first, logits.second, inputs=[feeds], tolerance=tolerance)
    shown = tuple(replace(o, name=f"logits of {o.name}") for o in found.outputs if o.name in logits.outputs)
    return replace(report, outputs=(*report.outputs, *shown), failure=report.failure or found.failure)


def _with_sites(report: Report, before: Graph, after: Graph) -> Report:
    """Return a report that also rests on what the rewritten parts give in float64."""
    removed, added = before.nodes.keys() - after.nodes.keys(), after.nodes.keys() - before.nodes.keys()
    work = operations(before.nodes[i].sig for i in removed) + operations(after.nodes[i].sig for i in added)
    if work > MOST_FLOPS:
        return replace(report, basis=f"{report.basis}; nor the rewritten parts together: {work / 1e9:.0f} GFLOP")
    try:
        sites = check_site(before, after, draws=1)
    except (EquivalenceError, ModelError, MemoryError) as error:
        return replace(report, basis=f"{report.basis}; nor the rewritten parts: {str(error) or 'memory is short'}")
    basis = f"float64 reference of the rewritten parts: largest relative error {sites.max_relative_error:.1e}"
    failure = "" if sites.ok else f"in a rewritten part, {sites.verdict}"
    return replace(report, basis=basis, failure=report.failure or failure)


def report_on(
    first: Subject,
    drawn: Sequence[Draw],
    found: Sequence[list[Value]],
    labels: tuple[str, ...],
    reference: Callable[[int], list[Value]],
    tolerance: float | None = None,
) -> Report:
    """Return how what a second model gave on what was drawn differs from what the first gave.

    Args:
        first: the first model.
        drawn: what was drawn.
        found: outputs of the second, for each draw.
        labels: sizes of each draw, for people.
        reference: computes the outputs of a draw in float64 (`reference_of`).
        tolerance: as in `validate`.
    """
    graph, exact = first.graph, _exact_basis(drawn)
    differences = [
        [compare(x, y, tolerance if d.whole is None else 0.0) for x, y in zip(d.outputs, outputs, strict=True)]
        for d, outputs in zip(drawn, found, strict=True)
    ]
    bad_draws = [i for i, listed in enumerate(differences) if not all(d.ok for d in listed)]
    suspects = [i for i in bad_draws if drawn[i].whole is None]
    wanted = suspects if exact else bad_draws
    references, basis = ({}, exact) if exact and not wanted else _references(first, drawn[0], wanted, reference)
    basis = exact or basis
    reports: list[OutputReport] = []
    for k, (name, value) in enumerate(zip(graph.info.output_names, graph.outputs, strict=True)):
        errors = {i: _errors(r[k], drawn[i].outputs[k], found[i][k], whole=bool(wanted)) for i, r in references.items()}
        column = [listed[k] for listed in differences]
        bad = [i for i, d in enumerate(column) if not d.ok]
        is_rounding = bool(bad) and all(i in errors and _only_rounds(column[i], *errors[i]) for i in bad)
        shown = errors.get(bad[0] if bad else next(iter(errors), 0))
        is_open = not graph.type_of(value).const  # what no input reaches is compared whole
        is_constant = is_open and not bad and _is_constant([d.outputs[k] for d in drawn])
        reports.append(OutputReport(name, worst(column), shown, is_rounding, is_constant))
    return Report(tuple(reports), labels, basis)


def _exact_basis(drawn: Sequence[Draw]) -> str:
    """Return what the comparison rests on where whole numbers were drawn, else nothing."""
    whole = [d.whole for d in drawn if d.whole is not None]
    if not whole:
        return ""
    rest = "; on normal ones with a tolerance" if len(whole) < len(drawn) else ""
    return f"exact on whole numbers up to {whole[0]}, on which neither model rounds{rest}"


def _is_constant(values: Sequence[Value]) -> bool:
    """Return whether a tensor is the same in all draws: of a model whose head is still all zeros, all NaN, or empty."""
    if len(values) < 2 or not all(isinstance(value, np.ndarray) for value in values):
        return False
    first = values[0]
    return all(np.array_equal(first, other, equal_nan=first.dtype.kind == "f") for other in values[1:])


def _only_rounds(difference: Difference, first: float, second: float) -> bool:
    credible = difference.tolerance > 0 and first <= CREDIBLE * difference.tolerance
    return credible and second <= max(NOT_WORSE * first, difference.tolerance)


def _errors(reference: Value, first: Value, second: Value, *, whole: bool) -> tuple[float, float]:
    """Return the relative errors of two outputs against the float64 reference; NaN where there is none.

    Unless it is whole it may be of the first rows alone.
    """
    if any(isinstance(value, list | dict) or value is None for value in (reference, first, second)):
        return nan, nan
    if not whole and first.ndim == reference.ndim > 0:
        first, second = first[: len(reference)], second[: len(reference)]
    if not reference.shape == first.shape == second.shape or reference.dtype != np.float64:
        return nan, nan
    a, b = first.astype(np.float64), second.astype(np.float64)
    groups = groups_of(a, b)  # those by which the two were compared
    return compare_floats(reference, a, 0.0, groups).relative, compare_floats(reference, b, 0.0, groups).relative


def _references(
    first: Subject, shown: Draw, wanted: Sequence[int], reference: Callable[[int], list[Value]]
) -> tuple[dict[int, list[Value]], str]:
    """Return the outputs of some draws computed in float64, and what the comparison rests on.

    Where none are wanted these are of the first draw, which only shows by how much models round, and of one sample of
    it if samples are known apart.
    """
    if first.weight_bytes > REFERENCE_BYTES:
        return {}, f"{FLOAT32_ONLY}: weights of {first.weight_bytes} bytes"
    try:
        if wanted:
            return {i: reference(i) for i in wanted}, "float64 reference"
        lone = for_one_sample(first.graph)
        graph, feeds = lone or first.graph, shown.feeds
        if (work := operations(node.sig for _, node in graph.operators())) > MOST_FLOPS:
            return {}, f"{FLOAT32_ONLY}: {work / 1e9:.0f} GFLOP"
        if lone:
            feeds = {name: value[:1] for name, value in feeds.items()}
        outputs = _in_float64(graph, feeds, shown.sizes)
        return {0: outputs}, f"float64 reference{' of one sample' if lone else ''}"
    except (ModelError, MemoryError) as error:
        return {}, f"{FLOAT32_ONLY}: {str(error) or 'memory is short'}"


def reference_of(first: Subject, drawn: Sequence[Draw], i: int) -> list[Value]:
    """Compute the outputs of one draw in float64.

    Raises:
        ModelError: the model holds an operator that can't be computed here.
    """
    return _in_float64(first.graph, drawn[i].feeds, drawn[i].sizes)


def _in_float64(graph: Graph, feeds: Feeds, sizes: Mapping[str, int]) -> list[Value]:
    by_name = {graph.leaves[v].name: v for v in graph.info.inputs}
    known = {by_name[name]: value for name, value in feeds.items() if name in by_name}
    values = run_graph(graph, known, graph.outputs, FLOAT64, sizes)
    return [FLOAT64.to_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
