"""What a step does to tokens: one small network answers for each of them, given the one that is acted on."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from taso_agents.world_models.tokens import Arrangement, Edits, TokenLayout, arrange


class Step(NamedTuple):
    """What the model expects of a step, for B graphs with P items.

    Attributes:
        layout: of the tokens before it.
        stays: (P,) logits that a token stays; meaningless for fronts.
        new: (P, R + 1) logits of the number of tokens behind an item.
        moved: (P, D) tokens as they are afterwards, if they stay.
        state: (P, H) what new tokens are made from.
    """

    layout: TokenLayout
    stays: Tensor
    new: Tensor
    moved: Tensor
    state: Tensor


class TokenTransition(nn.Module):
    """Predicts for each item whether it stays, how it changes, and how many new tokens come behind it.

    An item and the chosen token meet in a sum and in a product: the product tells whether they share nodes. An item
    also sees the next of its substitution, if there is one, since what comes behind it must belong between the two.

    Args:
        xfers: substitutions N.
        width: numbers D of a token.
        hidden: units H.
        most_new: most tokens R that come behind one.
    """

    def __init__(self, xfers: int, width: int, hidden: int, most_new: int) -> None:
        super().__init__()
        self.width, self.most_new = width, most_new
        D, H = width, hidden
        self.fronts = nn.Embedding(xfers, D)
        self.rule = nn.Embedding(xfers, H)
        self.chosen_rule = nn.Embedding(xfers, H)
        self.relation = nn.Embedding(6, H)
        self.of_next = nn.Linear(D, H, bias=False)
        self.of_item, self.of_chosen = nn.Linear(D, H), nn.Linear(D, H, bias=False)
        self.item_side, self.chosen_side = nn.Linear(D, H, bias=False), nn.Linear(D, H, bias=False)
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(H, H), nn.ReLU())
        self.outcome = nn.Linear(H, 1 + most_new + 1 + D)
        self.number = nn.Embedding(most_new, H)
        self.make = nn.Sequential(nn.ReLU(), nn.Linear(H, H), nn.ReLU(), nn.Linear(H, D))

    def forward(self, tokens: Tensor, layout: TokenLayout, chosen: Tensor, seen: Tensor) -> Step:
        """Predict what an action does.

        Args:
            tokens: (B, M, D).
            layout: of them.
            chosen: (B,) number of the token that is acted on; negative if there is no token of it.
            seen: (N,) bool: the S substitutions of the layout.
        """
        B = len(tokens)
        numbers = seen.nonzero()[:, 0]
        graph, known = layout.item_graph, chosen >= 0
        at = chosen.clamp(min=0)
        acted = tokens[torch.arange(B), at] * known[:, None]
        acted_rule = layout.rule[torch.arange(B), at]
        own = tokens[graph, layout.item_token.clamp(min=0)]
        is_token = layout.item_token >= 0
        own = torch.where(is_token[:, None], own, self.fronts(numbers)[layout.item_rule])
        relation = (layout.item_rule == acted_rule[graph]).long() + (is_token & (layout.item_token == chosen[graph]))
        group = graph * len(seen) + layout.item_rule
        followed = functional.pad(group[1:] == group[:-1], (0, 1))
        behind = own.roll(-1, 0) * followed[:, None]
        of_graph = self.of_chosen(acted) + self.chosen_rule(numbers[acted_rule])
        joint = self.item_side(own) * self.chosen_side(acted)[graph]
        state = self.mix(
            self.of_item(own)
            + of_graph[graph]
            + self.rule(numbers)[layout.item_rule]
            + joint
            + self.relation(2 * relation + followed)
            + self.of_next(behind)
        )
        stays, new, change = self.outcome(state).split([1, self.most_new + 1, self.width], 1)
        moved = functional.layer_norm(own + change, (self.width,))
        return Step(layout, stays[:, 0], new, moved, state)

    def carry_out(self, step: Step, edits: Edits) -> tuple[Tensor, Arrangement]:
        """Return the tokens (B, M, D) after these edits, and how they are arranged.

        More than R may come behind one: those from the R-th on are made alike.
        """
        found = arrange(step.layout, edits)
        is_new = found.number >= 0
        number = found.number[is_new].clamp(max=self.most_new - 1)
        made = self.make(step.state[found.item[is_new]] + self.number(number))
        rows = step.moved[found.item].index_put((is_new.nonzero()[:, 0],), functional.layer_norm(made, (self.width,)))
        empty = rows.new_zeros(*step.layout.valid.shape, self.width)
        return empty.index_put((found.graph, found.slot), rows), found
