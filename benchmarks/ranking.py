"""What a learned ranking saves where each candidate has to be measured: gain found by numbers of measurements.

    python benchmarks/ranking.py [network ...] [--starts 5] [--cost recorded:epyc-zen4-1t] [--plot FILE]
    python benchmarks/ranking.py SqueezeNet1.1 --cost latency --starts 1 --measurements 32

The same descent (`taso_gym.search.ranked`) measures candidates in the order of a model that learns from what was
measured, in the order of the roofline model, and in random order. It begins at the network's graph and at graphs some
random rewrites away from it; of each start the three orders get the same number of measurements. Printed is the cost
saved by then, as interquartile mean over the starts with its 95 % bootstrap interval, in % of the start's cost; and
the rank correlation (Spearman) between the order and the truth, over the candidates that come up at a state.
With recorded costs (measured in onnxruntime beforehand) a run can be repeated exactly; with ``latency`` graphs are
measured end to end now. The order "boosted", which is left out by default, learns by gradient boosting
(scikit-learn) in place of the linear model.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from taso_agents.stats import iqm_estimate
from taso_gym import cost as costs
from taso_gym import models
from taso_gym.cost.calibrate import rank_correlation
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import Match, RewriteState
from taso_gym.search.ranked import ORDERS, Ranked
from taso_gym.search.ranking import ROOFLINE, ChangeModel, Expected, Features, matrices

LEARNED = ("learned", "boosted")
WALK = 6
PROBED = 64


def starts(network: str, spec: str, count: int) -> list[RewriteState]:
    """Return the network's graph and graphs after random rewrites, each as a start of its own."""
    rules = RuleSet.load("default")
    found: list[RewriteState] = []
    for seed in range(count):
        state, rng = RewriteState(models.build(network), rules, costs.load("roofline")), np.random.default_rng(seed)
        for _ in range(WALK if seed else 0):
            legal = [m for row in state.matches for m in row]
            state = state.apply(legal[rng.integers(len(legal))])
        graph = state.graph
        model = costs.load("roofline" if spec == "latency" else spec, dims=costs.bind_dims(graph), start=graph)
        found.append(RewriteState(graph, rules, model))
    return found


class Boosted(ChangeModel):
    """Gradient boosting (Friedman 2001) on what the roofline model leaves over, fitted anew after each measurement."""

    def expect(self, candidates: Sequence[Features]) -> Expected:
        """Return what is expected of candidates; how sure that is isn't known."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        base = np.array([features[ROOFLINE] for features in candidates], np.float64)
        if self.seen:
            known, asked = matrices([features for features, _ in self.seen], candidates)
            left = [change - features[ROOFLINE] for features, change in self.seen]
            trees = HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=3, random_state=0).fit(known, left)
            base += trees.predict(asked)
        return Expected(base, np.zeros(len(base)))


def descend(
    start: RewriteState, order: str, seed: int, measurements: int, arguments: dict
) -> tuple[np.ndarray, Ranked]:
    """Return the cost saved in % after each number of measurements."""
    known = order if order in ORDERS else "learned"
    search = Ranked(start, np.random.default_rng(seed), order=known, patience=10**9, **arguments)
    if order == "boosted":
        search.model = Boosted()
    begin, saved = search.best_value, np.zeros(measurements + 1)
    while search.explored < measurements:
        before, goes_on = search.explored, search.step()
        saved[before + 1 :] = saved[before]
        if not goes_on:
            break
        saved[min(search.explored, measurements) :] = 100 * (begin - search.best_value) / begin
    return saved, search


def correlations(start: RewriteState, models: Sequence[ChangeModel], seed: int) -> list[float]:
    """Return Spearman's correlations of models' changes with the true ones, over candidates of a state."""
    search, rng = Ranked(start, np.random.default_rng(seed)), np.random.default_rng(seed)
    legal: list[Match] = [m for row in start.matches for m in row]
    chosen = [legal[i] for i in rng.permutation(len(legal))[:PROBED]]
    features = [search._features(start, match) for match in chosen]
    truth = np.array([start.delta(match).time_ps for match in chosen])
    return [rank_correlation(model.expect(features).mean, truth) for model in models]


def plot(curves: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Draw the means over starts."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.5), layout="constrained", squeeze=False)
    for axis, (network, of_order) in zip(axes[0], curves.items(), strict=True):
        for order, each in of_order.items():
            axis.plot(each.mean(0), label=order)
            axis.fill_between(range(each.shape[1]), each.min(0), each.max(0), alpha=0.15)
        axis.set(title=network, xlabel="candidates measured")
    axes[0][0].set_ylabel("cost saved, %")
    axes[0][0].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print a table a network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["SqueezeNet1.1", "ResNet18", "InceptionV3", "BERT"])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--cost", default="recorded:epyc-zen4-1t", help="a cost model, or latency")
    parser.add_argument("--measurements", type=int, default=256)
    parser.add_argument("--orders", nargs="+", choices=[*ORDERS, "boosted"], default=list(ORDERS))
    parser.add_argument("--optimism", type=float, default=0.0)
    parser.add_argument("--top", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    curves: dict[str, dict[str, np.ndarray]] = {}
    points = [n for n in (8, 16, 32, 64, 128, 256, 512) if n <= options.measurements]
    for network in options.networks:
        arguments = {"optimism": options.optimism, "top": options.top}
        arguments["path"] = "latency" if options.cost == "latency" else "cost"
        begin, of_order = starts(network, options.cost, options.starts), curves.setdefault(network, {})
        print(f"\n| {network} | " + " | ".join(map(str, points)) + " |\n" + "| --- " * (len(points) + 1) + "|")
        for order in options.orders:
            began = time.process_time()
            runs = [descend(s, order, i, options.measurements, arguments) for i, s in enumerate(begin)]
            of_order[order] = np.stack([saved for saved, _ in runs])
            cells = [str(iqm_estimate(of_order[order][:, point])) for point in points]
            print(f"| {order} | " + " | ".join(cells) + f" | {time.process_time() - began:.1f} s CPU", flush=True)
            if order in LEARNED and options.cost != "latency":
                models = [[search.model, ChangeModel()] for _, search in runs]
                pairs = [
                    correlations(state, each, 9 + i) for i, (state, each) in enumerate(zip(begin, models, strict=True))
                ]
                found, analytic = (iqm_estimate(column) for column in zip(*pairs, strict=True))
                print(f"Spearman over candidates of the start: {order} {found}, roofline {analytic}", flush=True)
    if options.plot:
        plot(curves, options.plot)


if __name__ == "__main__":
    main()
