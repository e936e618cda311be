"""Random operators that draw the same in two models: where one has no seed, the copy that is run gets one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from zlib import crc32

from onnx import ModelProto, NodeProto, helper

from taso_gym.graph import Graph
from taso_gym.onnx_io.reference import blank_node, functions_of
from taso_gym.onnx_io.scope import RANDOM, domain_of, function_key, inner_nodes
from taso_gym.signature import OpaqueOperator

SEEDS = 2**24
"""A seed is mostly a float32, which has all whole numbers below."""


def is_random(graph: Graph) -> bool:
    """Whether a graph holds random operators, in subgraphs and functions, too."""
    ops = (node.sig.op for _, node in graph.operators())
    impure = [blank_node(op) for op in ops if isinstance(op, OpaqueOperator) and not op.pure]
    return any(map(_draws, _at_any_depth(chain(impure, *(f.node for f in functions_of(graph.info.template))))))


def seeded(model: ModelProto) -> ModelProto:
    """Return a copy of a model in which all random operators have a seed: their own, or one made of what names them.

    That is their first output: no rule matches them, so that a rewritten model has it, too; in what order operators
    come it doesn't keep.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    functions = {(domain_of(f.domain), f.name, f.overload): f.node for f in copy.functions}
    for key, nodes in {(): copy.graph.node, **functions}.items():
        for node in _at_any_depth(nodes):
            if _draws(node) and function_key(node) not in functions and all(a.name != "seed" for a in node.attribute):
                seed = crc32(repr((key, node.output[0])).encode()) % SEEDS
                node.attribute.append(helper.make_attribute("seed", seed if node.op_type == "Dropout" else float(seed)))
    return copy


def _draws(node: NodeProto) -> bool:
    """Whether a node is random, as is a Dropout that may be told to train."""
    name = node.op_type if not domain_of(node.domain) else ""
    return name in RANDOM or (name == "Dropout" and len(node.input) > 2)


def _at_any_depth(nodes: Iterable[NodeProto]) -> Iterable[NodeProto]:
    return (inner for node in nodes for inner in (node, *inner_nodes(node)))
