"""Coverage-guided fuzzing of ONNX files, by atheris: what isn't a model ends in a ModelError, all else survives saving.

    python tests/fuzz_onnx.py FOLDER [-max_total_time=3600] [-runs=1000] [other options of libFuzzer]

FOLDER keeps the inputs that reach new code, and is filled with small models where it is empty. Half of the mutations
are of bytes, half of one field of the model. A file that ends in any other error, a crash, or takes over a minute or
8 GB is written as crash-…, timeout-… or oom-… where the script was started; name it instead of FOLDER to run it alone.
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris
from google.protobuf.message import DecodeError, Message

with atheris.instrument_imports(include=["taso_gym.onnx_io"]):
    from onnx import ModelProto

    from taso_gym.errors import ModelError
    from taso_gym.graph import check
    from taso_gym.onnx_io import load, save

sys.path.insert(0, str(Path(__file__).parent))
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
NUMBERS = (0, 1, -1, 2, 7, 8, 16, 20, 127, 255, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))
TEXTS = ("", "Relu", "Identity", "If", "Reshape", "axis", "ai.onnx", "my", "../x", "é")


def test_one_input(data: bytes) -> None:
    """Load bytes; a graph that comes out is sound, and what it is saved as loads again."""
    path = FOLDER / "model.onnx"
    path.write_bytes(data)
    try:
        graph = load(path)
    except ModelError:
        return
    check(graph)
    try:
        save(graph, FOLDER / "saved.onnx")
    except ModelError:
        return
    load(FOLDER / "saved.onnx")


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Change bytes, or one field of the model."""
    rng = random.Random(seed)
    try:
        model = ModelProto.FromString(data)
        places = list(_places(model))
        if places and rng.random() < 0.5:
            _change(*rng.choice(places), [text for text in _texts(model) if isinstance(text, str)], rng)
            return model.SerializeToString()[:max_size]
    except (DecodeError, UnicodeDecodeError):  # no model, or text in it that is none
        pass
    return atheris.Mutate(data, max_size)


def _places(message: Message) -> Any:
    """Yield every (message, field) that is set, at any depth."""
    waiting = [message]
    while waiting:
        holder = waiting.pop()
        for field, value in holder.ListFields():
            yield holder, field
            if field.message_type:
                waiting.extend([value] if field.has_presence else value)


def _texts(model: Message) -> Any:
    for holder, field in _places(model):
        if field.type == field.TYPE_STRING:
            value = getattr(holder, field.name)
            yield from [value] if field.has_presence else value
    yield from TEXTS


def _change(holder: Any, field: Any, texts: list[str], rng: random.Random) -> None:
    """Replace, remove, repeat or reorder what a field holds."""
    if field.has_presence:
        if field.message_type or rng.random() < 0.1:
            holder.ClearField(field.name)
        else:
            setattr(holder, field.name, _value(field, texts, rng))
        return
    values = getattr(holder, field.name)
    at, action = rng.randrange(len(values)), rng.choice(("remove", "repeat", "swap", "replace"))
    if action == "remove":
        del values[at]
    elif action == "repeat":
        values.append(values[at])
    elif action == "swap":
        kept = list(values)
        rng.shuffle(kept)
        del values[:]
        values.extend(kept)
    elif not field.message_type:
        values[at] = _value(field, texts, rng)


def _value(field: Any, texts: list[str], rng: random.Random) -> Any:
    if field.type == field.TYPE_STRING:
        return rng.choice(texts)
    if field.type == field.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 1, 4, 8, 12)))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice((0.0, 1.5, float("nan"), float("inf"), -1e30))
    if field.type == field.TYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    low, high = (-(1 << 31), (1 << 31) - 1) if field.type == field.TYPE_INT32 else (-(1 << 63), (1 << 63) - 1)
    low = 0 if field.type == field.TYPE_UINT64 else low
    return rng.choice([n for n in NUMBERS if low <= n <= high])


def fill(folder: Path) -> None:
    """Put small models into an empty folder."""
    from fault_models import seeds

    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        for name, model in seeds().items():
            (folder / name).write_bytes(model.SerializeToString())


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if not Path(sys.argv[1]).is_file():
        fill(Path(sys.argv[1]))
    options = ["-timeout=60", "-rss_limit_mb=8192", "-max_len=20000", "-close_fd_mask=0"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:]], test_one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
