"""``StagedCompactor``: compacts, measures, and compresses what was compacted if it must."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..context import Archive, Compacted, Compactor, Limits, LossReport, Meter, Pages, Summariser
from ..context.steps import (
    DropHints,
    OffloadRecent,
    OffloadResults,
    Step,
    Summarise,
    SummariseRecent,
)
from ..message import Msg

# What is big leaves, and nothing else changes.
COMPACT: tuple[Step, ...] = (DropHints(), OffloadResults(), OffloadRecent())
# What is old is summarised.
COMPRESS: tuple[Step, ...] = (DropHints(), Summarise(), OffloadRecent(), SummariseRecent())


class StagedCompactor(Compactor):
    """Off-loads first. If more than ``ratio`` of the tokens is left, or still too many, what is
    left is summarised: the summary is made of stubs, never of what they stand for."""

    def __init__(
        self,
        limits: Limits,
        ratio: float,
        *,
        archive: Archive | None = None,
        meter: Meter | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        super().__init__(
            limits, archive=archive, meter=meter, summariser=summariser, steps=COMPRESS
        )
        self.ratio = ratio
        self._first = Compactor(
            limits, archive=self.archive, meter=self.meter, steps=(DropHints(), OffloadResults())
        )

    async def compact(
        self,
        messages: Sequence[Msg],
        *,
        pages: Pages | None = None,
        pinned: Collection[str] = (),
        hints: Collection[str] = (),
        reserved: int = 0,
        force: bool = False,
    ) -> Compacted:
        """Return what of a whole history is resident; see ``Compactor.compact``."""
        first = await self._first.compact(
            messages, pages=pages, pinned=pinned, hints=hints, reserved=reserved, force=force
        )
        if self._is_enough(first.report):
            return first
        second = await super().compact(
            messages, pages=first.pages, pinned=pinned, hints=hints, reserved=reserved,
            force=first.report.is_within_budget,
        )  # fmt: skip
        return second._replace(report=_joined(first.report, second.report))

    def _is_enough(self, report: LossReport) -> bool:
        if not report.losses or not report.is_within_budget:
            return report.is_within_budget
        return report.tokens_after <= self.ratio * report.tokens_before


def _joined(first: LossReport, second: LossReport) -> LossReport:
    return LossReport(
        budget=second.budget,
        tokens_before=first.tokens_before,
        tokens_after=second.tokens_after,
        losses=first.losses + second.losses,
        repairs=second.repairs,
        troubles=first.troubles + second.troubles,
        excess=second.excess,
    )
