"""Every error that this package raises on purpose; a message says what was expected, what was found, and where."""

from __future__ import annotations


class TasoError(Exception):
    """Base class: catch this to catch whatever the package reports about its input."""


class ModelError(TasoError):
    """A model file or graph that can't be read, checked or written."""


class TypeInferenceError(TasoError):
    """Operands or attributes that an operator doesn't accept."""


class RuleError(TasoError):
    """A rule that doesn't parse or isn't well formed."""

    def __init__(self, message: str, *, line: str = "", where: str = "", column: int | None = None) -> None:
        """Build the message.

        Args:
            message: what was expected and what was found.
            line: the source line of the rule, quoted back.
            where: ``file:line`` of the rule.
            column: zero-based offset of the fault in ``line``; a caret is drawn under it.
        """
        text = f"{where}: {message}" if where else message
        if line:
            text += f"\n  {line}"
            if column is not None:
                text += "\n  " + " " * column + "^"
        super().__init__(text)


class MatchError(TasoError):
    """A match that isn't legal in the state it is applied to."""


class CostError(TasoError):
    """A cost model, device or table that is missing, or an operator that it can't cost."""


class KernelError(CostError):
    """An operator or model that a runtime refuses, or fails to run, whenever it is asked: caches remember that."""


class OutOfMemoryError(CostError):
    """An operator or model that there isn't enough memory for at the moment: nothing remembers that."""


class EquivalenceError(TasoError):
    """Two models that were to be equal and aren't, or can't be compared."""


class ReplayError(TasoError):
    """A replay that belongs to another model, rule set or version."""


class CheckpointError(TasoError):
    """A file of an agent that is missing, damaged, or belongs to another rule set or version."""


class OptionError(TasoError):
    """An option, identifier or environment argument with a value outside its choices."""


class WriteError(OptionError):
    """A file that the system doesn't write: there is no room on the disk, or no permission."""


class MissingPackageError(TasoError):
    """A package that an optional part needs and that isn't installed."""


def one_line(error: object) -> str:
    """Return an exception's message, or another text, as one line, without pybind11's list of signatures."""
    return " ".join(str(error).split()).partition(" The following argument types are supported:")[0]
