"""Other optimizers of ONNX files.

cd benchmarks; python -m support.other_tools TOOL IN.onnx OUT.onnx
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import onnx
from support.by_hand import by_hand

from taso_gym.atomic import replacing


def transformers(source: Path, target: Path) -> None:
    """Run onnxruntime's transformers optimizer; the best of its kinds of model that apply: BERT's finds most."""
    from onnxruntime.transformers.optimizer import optimize_model

    kind = "vit" if "ViT" in source.name else "gpt2" if "GPT" in source.name else "bert"
    optimize_model(str(source), model_type=kind, opt_level=0, only_onnxruntime=False).save_model_to_file(str(target))


def onnxsim(source: Path, target: Path) -> None:
    import onnxsim

    model, ok = onnxsim.simplify(str(source))
    if not ok:
        raise SystemExit("onnxsim: its own check failed")
    onnx.save(model, target)


def onnxslim(source: Path, target: Path) -> None:
    import onnxslim

    onnx.save(onnxslim.slim(str(source)), target)


def onnxscript(source: Path, target: Path) -> None:
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


TOOLS: dict[str, Callable[[Path, Path], None]] = {
    "transformers": transformers,
    "onnxsim": onnxsim,
    "onnxslim": onnxslim,
    "onnxscript": onnxscript,
    "by-hand": by_hand,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    with replacing(arguments.target) as temporary:
        TOOLS[arguments.tool](arguments.source, temporary)


if __name__ == "__main__":
    main()
