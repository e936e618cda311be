"""Whether the text in a file is text: the parser hands out bytes where it isn't."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from taso_gym.errors import ModelError


def expect_text(model: Message) -> None:
    """Look at every text field of a message.

    Raises:
        ModelError: one isn't UTF-8.
    """
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        texts, lists, messages, message_lists = _fields(message.DESCRIPTOR)
        for name in texts:
            if not isinstance(getattr(message, name), str):
                raise ModelError(f"expected UTF-8 in {message.DESCRIPTOR.name}.{name}, found {getattr(message, name)}")
        for name in lists:
            for text in getattr(message, name):
                if not isinstance(text, str):
                    raise ModelError(f"expected UTF-8 in {message.DESCRIPTOR.name}.{name}, found {text}")
        waiting.extend(getattr(message, name) for name in messages if message.HasField(name))
        for name in message_lists:
            waiting.extend(getattr(message, name))


@cache
def _fields(descriptor: Any) -> tuple[tuple[str, ...], ...]:
    """Return the names of a message's fields that hold a text, texts, a message, messages."""
    kinds = (
        (type_, single) for type_ in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE) for single in (1, 0)
    )
    return tuple(tuple(f.name for f in descriptor.fields if (f.type, f.has_presence) == kind) for kind in kinds)
