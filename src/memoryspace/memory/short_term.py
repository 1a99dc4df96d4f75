"""The settings of ``ReMeShortTermMemory``, under ReMe's names, and the compactor they describe."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from ..context import Archive, Compacted, Compactor, Limits, LossReport, Meter, Pages, Summariser
from ..context.steps import (
    DropHints,
    OffloadRecent,
    OffloadResults,
    Step,
    Summarise,
    SummariseRecent,
)
from ..errors import InvalidInput
from ..message import Msg
from ..record import is_number

WorkingSummaryMode: TypeAlias = Literal["compact", "compress", "auto"]

# Big tool results leave; nothing else changes.
COMPACT: tuple[Step, ...] = (DropHints(), OffloadResults(), OffloadRecent())
# Old messages are summarised.
COMPRESS: tuple[Step, ...] = (DropHints(), Summarise(), OffloadRecent(), SummariseRecent())

_LEAST = {
    "max_total_tokens": 1,
    "max_tool_message_tokens": 0,
    "keep_recent_count": 0,
    "preview_char_length": 0,
}


class ShortTermSettings(Struct, frozen=True, kw_only=True):
    """The settings; see ``ReMeShortTermMemory``. Raises ``InvalidInput`` for invalid ones."""

    working_summary_mode: WorkingSummaryMode = "auto"
    compact_ratio_threshold: float = 0.75
    max_total_tokens: int = 20000
    max_tool_message_tokens: int = 2000
    group_token_threshold: int | None = None
    keep_recent_count: int = 10
    preview_char_length: int = 400

    def __post_init__(self) -> None:
        modes = get_args(WorkingSummaryMode)
        if self.working_summary_mode not in modes:
            raise InvalidInput(
                f"working_summary_mode must be one of {', '.join(modes)}, "
                f"got {self.working_summary_mode!r}"
            )
        if not is_number(self.compact_ratio_threshold) or self.compact_ratio_threshold < 0:
            raise InvalidInput(
                f"compact_ratio_threshold must be a number, 0 or more, "
                f"got {self.compact_ratio_threshold!r}"
            )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InvalidInput(
                    f"{name} must be a whole number of at least {least}, got {value!r}"
                )
        group = self.group_token_threshold
        if group is not None and (type(group) is not int or group < 0):
            raise InvalidInput(
                f"group_token_threshold must be None or a whole number, got {group!r}"
            )

    def compactor(self, archive: Archive, meter: Meter, summariser: Summariser | None) -> Compactor:
        """Return the compactor. Once over the limit it removes all it may, to run rarely."""
        limits = Limits(
            budget=self.max_total_tokens,
            low_water=0,
            keep_recent=self.keep_recent_count,
            tool_result=self.max_tool_message_tokens,
            preview=self.preview_char_length,
        )
        if self.working_summary_mode == "auto":
            return StagedCompactor(
                limits,
                self.compact_ratio_threshold,
                archive=archive,
                meter=meter,
                summariser=summariser,
            )
        steps = COMPACT if self.working_summary_mode == "compact" else COMPRESS
        return Compactor(limits, archive=archive, meter=meter, summariser=summariser, steps=steps)


class StagedCompactor(Compactor):
    """Off-loads big results first, then summarises if too much is left.

    That is the case if more than ``ratio`` of the tokens are left, or more than the budget. The
    summary is made of the stubs, not of the results they replace.
    """

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
        """Return the resident part of a history; see ``Compactor.compact``."""
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
