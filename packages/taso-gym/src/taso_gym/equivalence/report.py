"""What a comparison found, as data and as a table."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from taso_gym.equivalence.compare import Difference

FLOAT32_ONLY = "float32 only"
"""Basis of a comparison that no exact or float64 computation stands behind."""


@dataclass(frozen=True)
class OutputReport:
    """What was found for one output, over all draws.

    Attributes:
        name: of the output.
        difference: the largest.
        reference: relative errors of the first and the second model against the float64 reference in the first draw
            that was computed in float64; None where none was, NaN where this output has none.
        is_rounding: the difference is above the tolerance, but the second model is as near to the reference as the
            first: the two round differently.
        is_constant: it is the same, or empty, for all inputs that were drawn, so that comparing it says little; not of
            what no input reaches.
    """

    name: str
    difference: Difference
    reference: tuple[float, float] | None = None
    is_rounding: bool = False
    is_constant: bool = False

    @property
    def ok(self) -> bool:
        """Whether the outputs are equal up to rounding."""
        return self.difference.ok or self.is_rounding


@dataclass(frozen=True)
class Report:
    """Result of comparing two models.

    Attributes:
        outputs: one entry for each output.
        draws: the inputs that were drawn, as "batch=2 seq=16"; "" where all sizes are fixed.
        basis: "float64 reference", of the whole, of one sample of a batch or of the rewritten parts, "exact" on which
            numbers, or "float32 only" and why.
        failure: what is wrong with the second model besides its outputs: it doesn't run on inputs that the first ran
            on, or a rewritten part gives something else in float64.
    """

    outputs: tuple[OutputReport, ...]
    draws: tuple[str, ...]
    basis: str
    failure: str = ""

    @property
    def ok(self) -> bool:
        """Whether the models are equal up to rounding."""
        return not self.failure and all(o.ok for o in self.outputs)

    @property
    def is_float32_only(self) -> bool:
        """Whether nothing but onnxruntime's own results was compared."""
        return self.basis.startswith(FLOAT32_ONLY)

    @property
    def max_relative_error(self) -> float:
        """Largest error over all outputs, relative to the magnitude of the output."""
        return max((o.difference.relative for o in self.outputs), default=0.0)

    @property
    def verdict(self) -> str:
        """One line that says whether they are equal, or which output is off."""
        if self.failure:
            return f"different: the second model: {self.failure}"
        bad = [o for o in self.outputs if not o.ok]
        if not bad:
            constant = ", ".join(repr(o.name) for o in self.outputs if o.is_constant)
            weak = f"; the same for all of them, which says little: {constant}" if constant else ""
            return f"equal: largest relative error {self.max_relative_error:.1e} over {len(self.draws)} draws{weak}"
        off = max(bad, key=lambda o: o.difference.relative)
        why = off.difference.note or f"relative error {off.difference.relative:.1e} above {off.difference.tolerance:g}"
        return f"different: output {off.name!r}: {why}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw a table of the outputs, and the verdict below."""
        sizes = [d for d in dict.fromkeys(self.draws) if d]
        table = Table(title=f"{len(self.draws)} draws{': ' if sizes else ''}{'; '.join(sizes)}", title_justify="left")
        table.add_column("output", overflow="fold")
        for name in ("relative error", "tolerance", "against float64", ""):
            table.add_column(name, justify="right")
        for o in self.outputs:
            known = o.reference and not any(map(math.isnan, o.reference))
            reference = "{:.1e} / {:.1e}".format(*o.reference) if known and o.reference else ""
            mark = o.difference.note or ("constant" if o.is_constant else "ok")
            mark = "rounding" if o.is_rounding else mark if o.ok else "differs"
            tolerance = f"{o.difference.tolerance:g}" if o.difference.tolerance else "exact"
            table.add_row(o.name, f"{o.difference.relative:.1e}", tolerance, reference, mark)
        yield table
        yield self.basis
        yield self.verdict

    def __str__(self) -> str:
        """Return the table as text; the last line is the verdict."""
        out = io.StringIO()
        Console(
            file=out, width=120, color_system=None, highlight=False, markup=False, emoji=False, soft_wrap=True
        ).print(self)
        return out.getvalue().rstrip()
