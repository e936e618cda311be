"""The environment: optimising a graph as a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gymnasium import spaces

from taso_gym.arguments import check_kinds
from taso_gym.checks import check_bools, check_choices, check_finite, check_limits, check_positive
from taso_gym.cost import CostModel
from taso_gym.env.game import GraphGame
from taso_gym.env.problem import Sizes, make_starts
from taso_gym.env.source import Model, Source
from taso_gym.errors import OptionError
from taso_gym.observation import EXTRA_VIEWS
from taso_gym.reward import Reward, make_reward
from taso_gym.rules.rule import Numerics, numerics_named
from taso_gym.rules.ruleset import RuleSet, load_checked


class TasoGraphEnv(GraphGame):
    """Make a deep-learning graph faster by substitutions that keep its meaning.

    ## Description
    The state is the computation graph of a network. A move applies one substitution (rule, xfer) at one of the places
    where its left side matches; the reward is the run time that it saves by a cost model. The graph that an episode
    ends with computes what the network computed, and `save_onnx` writes it as an ONNX file.

    ## Action Space
    `MultiDiscrete([N + 1, L])`: `(xfer, location)`.

    | part | range | meaning |
    |---|---|---|
    | xfer | 0 … N-1 | rule of the set |
    | xfer | N | NO-OP: stop and end the episode; legal in every state, at any location |
    | location | 0 … L-1 | which of the rule's matches, ordered by node ids |

    Legal locations of a rule are 0 … c-1. `action_masks()` gives the masks of the two parts for sb3-contrib; only the
    masks in the observation are exact. Any other action, of any type and shape, counts as a step, leaves the graph,
    costs `invalid_penalty` and sets `info["invalid_action"]`.

    ## Observation Space
    A flat `Dict` of finite boxes; every array is fresh in each step. P is the size of the largest left side.

    | key | shape | dtype | range | meaning |
    |---|---|---|---|---|
    | nodes | (max_nodes, 32) | float32 | 0 … 1; column 0: 0 … | operators and graph inputs: `NODE_FEATURES` |
    | node_mask | (max_nodes,) | int8 | 0, 1 | rows in use; a node keeps its row while it lives |
    | edges | (max_edges, 2) | int32 | 0 … max_nodes-1 | rows of producer and consumer |
    | edge_mask | (max_edges,) | int8 | 0, 1 | rows in use |
    | edge_features | (max_edges, 9) | float32 | 0 … 1 | ports and type of the value: `EDGE_FEATURES` |
    | globals | (8,) | float32 | 0 … 8 | cost, step and sizes, all relative: `GLOBAL_FEATURES` |
    | xfer_mask | (N + 1,) | int8 | 0, 1 | rules with a legal location; NO-OP |
    | location_masks | (N + 1, L) | int8 | 0, 1 | legal locations of each rule; of NO-OP, location 0 |
    | location_counts | (N + 1,) | int32 | 0 … L | their number; in place of the masks if `location_counts` |
    | matches | (max_matches, 2 + P) | int32 | -1 … | candidates: xfer, location, rows of the matched nodes |
    | match_mask | (max_matches,) | int8 | 0, 1 | rows in use |
    | cost_changes | (max_matches,) | float32 | -100 … 100 | if in `extra_views`: see below |

    Weights have no rows, nor has what is computed from them alone: it is folded on save and costs nothing. The columns
    are described in `taso_gym.observation`; column 0 of `nodes` is a category, the operator's number. `matches` lists
    every legal action but NO-OP, by xfer and location; what isn't in use, or has no row, is -1.
    `cost_changes` is the change of run time that each candidate would bring, in % of the start graph's.

    ## Rewards
    Chosen by `reward`, with `reward_kwargs`; RT is the run time by the cost model.

    | name | reward of a step |
    |---|---|
    | runtime | 100 · (RT[t-1] - RT[t]) / RT[0]; sums up to the total improvement in % |
    | runtime_memory | `alpha` · that + `beta` · the same of bytes read and written |
    | terminal | the total improvement at the end, 0 before |
    | objective | 100 · (V[t-1] - V[t]) / V[0] of an `objective` such as "time+0.2*size": `taso_gym.cost.objective` |
    | measured | improvement of the latency in onnxruntime, measured every `every` steps and at the end |

    ## Starting State
    The network as loaded: constants folded, equal nodes merged, Identity and Dropout removed. With `models` one of
    them, drawn with the seed or named by `options={"model": name}`.

    ## Episode End
    Termination: NO-OP, or no substitution is legal after a step. (If none is legal at the start, NO-OP is.)
    Truncation: `max_steps` steps were taken. The `max_episode_steps` of `gym.make` cuts an episode off from outside:
    rewards that are paid at its end (`terminal`, `measured`) are lost then.

    ## Arguments
    | name | default | meaning |
    |---|---|---|
    | model | | name of a network, path of an ONNX file, or `Graph` |
    | models | None | several, in place of `model`; a name or path is one |
    | model_kwargs | None | arguments of a built-in network (`{"batch": 4}`) |
    | rules | "default" | name or path of a rule set, or a `RuleSet`, of which `numerics` asks nothing but "exact" |
    | cost | "roofline" | a cost model of `taso_gym.cost`, by name or itself; what is no `SummedCost` ignores `dims` |
    | reward, reward_kwargs | "runtime", None | a row of `taso_gym.reward.REWARDS` and its parameters |
    | max_steps | 300 | steps until truncation |
    | max_locations | 200 | L: locations of a rule beyond it are illegal |
    | max_matches | 1024 | candidates beyond it, in the order of `matches`, are illegal |
    | max_nodes, max_edges | 1.5 × the start graph's | rows; a substitution that would need more isn't offered |
    | invalid_penalty | -1.0 | added to the reward of an illegal action |
    | location_counts | False | small observations for large replay buffers |
    | extra_views | () | optional keys of the observation |
    | portable | False | leave out rules whose result needs operators beyond the ONNX standard |
    | numerics | "reassociate" | loosest class of rules: exact, reassociate, fast |
    | dims | None | values of symbolic dimensions for cost and observation |
    | render_mode | None | ansi, svg (text of an SVG image), rgb_array |

    ## Info
    The same keys after `reset` and every `step`, all of NumPy's types but `invalid_action`, a bool: `cost_ms`,
    `initial_cost_ms`, `improvement_percent`, `step`, `rewrites` (substitutions applied), `candidates` (legal ones),
    `xfer` and `location` of the last action (-1: none, or illegal), `invalid_action`,
    `model` (number in `models`), `rules_digest` (bytes).

    ## Version History
    * v0: initial version.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "svg", "rgb_array"], "render_fps": 4}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        model: Model | None = None,
        *,
        models: Sequence[Model] | str | Path | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
        rules: str | Path | RuleSet = "default",
        cost: str | CostModel = "roofline",
        reward: str | Reward = "runtime",
        reward_kwargs: Mapping[str, Any] | None = None,
        max_steps: int = 300,
        max_locations: int = 200,
        max_matches: int = 1024,
        max_nodes: int | None = None,
        max_edges: int | None = None,
        invalid_penalty: float = -1.0,
        location_counts: bool = False,
        extra_views: Sequence[str] = (),
        portable: bool = False,
        numerics: Numerics = "reassociate",
        dims: Mapping[str, int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Load models and rules; see the class for the arguments.

        Raises:
            OptionError: an argument outside its choices; the message names them.
            ModelError: a file that can't be read.
            RuleError: a rule file that doesn't parse.
        """
        if (model is None) == (models is None):
            raise OptionError(
                "expected either model or models (a network, an ONNX file, a Graph), found both or neither"
            )
        check_kinds(rules=rules, cost=cost, model_kwargs=model_kwargs, reward_kwargs=reward_kwargs, dims=dims)
        several = () if models is None else models
        several = (several,) if isinstance(several, str | Path) else several
        check_kinds(models=several, extra_views=extra_views)
        chosen = list(several) if model is None else [model]
        for each in chosen:
            check_kinds(model=each)
        numerics_named(numerics)
        check_choices("render_mode", [render_mode], (None, *self.metadata["render_modes"]))
        extra_views = (extra_views,) if isinstance(extra_views, str) else tuple(extra_views)
        check_choices("extra_views", extra_views, EXTRA_VIEWS)
        check_positive(max_steps=max_steps, max_locations=max_locations, max_matches=max_matches)
        check_limits(max_nodes=max_nodes, max_edges=max_edges)
        check_finite(invalid_penalty=invalid_penalty)
        check_bools(location_counts=location_counts, portable=portable)
        self.rules = load_checked(rules, portable=portable, numerics=numerics)
        nodes, edges = (None if limit is None else int(limit) for limit in (max_nodes, max_edges))
        sizes = Sizes(int(max_locations), int(max_matches), nodes, edges, bool(location_counts), extra_views)
        named = "" if isinstance(rules, RuleSet) else str(rules)
        bound = {name: int(size) for name, size in (dims or {}).items()}
        base = Source("", dict(model_kwargs or {}), named, bool(portable), numerics, dims=bound)
        self.starts = make_starts(chosen, base, self.rules, cost, sizes)
        self.layout = self.starts[0].layout
        self.max_steps, self.invalid_penalty, self.render_mode = int(max_steps), float(invalid_penalty), render_mode
        self._reward = make_reward(reward, **(reward_kwargs or {}))
        space: Any = self.layout.space()
        self.observation_space = space
        self.action_space = spaces.MultiDiscrete([self.layout.xfers + 1, self.layout.locations])
