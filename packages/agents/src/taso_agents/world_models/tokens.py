"""What can be done to a graph as a sequence of tokens, and what a step does to it: some go, some come, all may change.

Tokens stand in the order of the observation's candidates, so numbers of locations say where each substitution's begin.
An *item* is a token, or the front of a substitution's tokens; new tokens come behind items.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class TokenLayout(NamedTuple):
    """Where the tokens and items of a batch are: at most M tokens of S substitutions each, P items in all.

    Attributes:
        valid: (B, M) there is a token.
        rule: (B, M) its substitution, 0 … S - 1.
        starts: (B, S) number of each substitution's first token.
        front_items: (B, S) item of each front.
        token_items: (B, M) item of each token; meaningless where there is none.
        item_graph, item_rule: (P,) graph and substitution of each item.
        item_token: (P,) number of its token; -1 for a front.
    """

    valid: Tensor
    rule: Tensor
    starts: Tensor
    front_items: Tensor
    token_items: Tensor
    item_graph: Tensor
    item_rule: Tensor
    item_token: Tensor


def lay_out(counts: Tensor, tokens: int) -> TokenLayout:
    """Lay out tokens by their numbers.

    Args:
        counts: (B, S) tokens of each substitution, at most M in all.
        tokens: M.
    """
    B, S = counts.shape
    valid, rule, starts = rules_of(counts, tokens)
    slots = torch.arange(tokens, device=counts.device)
    lengths = counts.sum(1) + S
    base = (lengths.cumsum(0) - lengths)[:, None]
    ranks = torch.arange(S, device=counts.device)
    front_items = base + starts + ranks
    token_items = base + slots + rule + 1
    P = int(lengths.sum())
    item_graph = torch.repeat_interleave(torch.arange(B, device=counts.device), lengths)
    item_rule, item_token = torch.empty(P, dtype=torch.long), torch.full((P,), -1)
    item_rule[front_items] = ranks.expand(B, S)
    item_rule[token_items[valid]] = rule[valid]
    item_token[token_items[valid]] = slots.expand(B, tokens)[valid]
    return TokenLayout(valid, rule, starts, front_items, token_items, item_graph, item_rule, item_token)


def rules_of(counts: Tensor, tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``valid``, ``rule`` and ``starts`` of a layout, for numbers of tokens (B, S)."""
    ends = counts.cumsum(1)
    slots = torch.arange(tokens, device=counts.device).expand(len(counts), tokens).contiguous()
    rule = torch.searchsorted(ends, slots, right=True).clamp(max=counts.shape[1] - 1)
    return slots < ends[:, -1:], rule, ends - counts


class Edits(NamedTuple):
    """What a step does to the items of a layout.

    Attributes:
        stays: (P,) bool: a token that is still there afterwards; False for fronts.
        new: (P,) how many tokens come behind the item.
    """

    stays: Tensor
    new: Tensor


class Arrangement(NamedTuple):
    """Tokens after a step.

    Attributes:
        counts: (B, S).
        graph, slot: (Q,) place of each token afterwards.
        item: (Q,) the token's item before, or the item that it came behind.
        number: (Q,) 0, 1, … of tokens that came behind an item; -1 for one that stayed.
    """

    counts: Tensor
    graph: Tensor
    slot: Tensor
    item: Tensor
    number: Tensor


def arrange(layout: TokenLayout, edits: Edits) -> Arrangement:
    """Carry out edits; what there is no room for is dropped at the end."""
    B, S = layout.starts.shape
    tokens = layout.valid.shape[1]
    each = edits.stays.long() + edits.new
    item = torch.repeat_interleave(torch.arange(len(each), device=each.device), each)
    first = each.cumsum(0) - each
    number = torch.arange(len(item), device=each.device) - first[item] - edits.stays[item].long()
    graph = layout.item_graph[item]
    of_graph = torch.zeros(B, dtype=torch.long, device=each.device).index_add_(0, layout.item_graph, each)
    slot = torch.arange(len(item), device=each.device) - (of_graph.cumsum(0) - of_graph)[graph]
    fits = slot < tokens
    graph, slot, item, number = graph[fits], slot[fits], item[fits], number[fits]
    counts = torch.zeros(B * S, dtype=torch.long, device=each.device)
    counts.index_add_(0, graph * S + layout.item_rule[item], torch.ones_like(graph))
    return Arrangement(counts.view(B, S), graph, slot, item, number)


def edits_of(layout: TokenLayout, following: Tensor, origins: Tensor) -> Edits:
    """Return what really happened.

    Args:
        layout: before.
        following: (B, S) tokens of each substitution afterwards.
        origins: (B, M) for each token afterwards its number before, -1 for a new one.
    """
    after = lay_out(following, origins.shape[1])
    P = len(layout.item_graph)
    stays, new = torch.zeros(P, dtype=torch.bool), torch.zeros(P, dtype=torch.long)
    graph, slot = after.valid.nonzero(as_tuple=True)
    origin, rule = origins[graph, slot], after.rule[graph, slot]
    kept = origin >= 0
    before = layout.token_items[graph, origin.clamp(min=0)]
    stays[before[kept]] = True
    here = torch.where(kept, before, layout.front_items[graph, rule])  # items ascend along the sequence
    behind = here.cummax(0).values
    new.index_add_(0, behind[~kept], torch.ones_like(behind[~kept]))
    return Edits(stays, new)
