"""The settings of short-term memory, by the names that ReMe gave them, and what they amount to."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from ..context import Archive, Compactor, Limits, Meter, Summariser
from ..errors import InvalidInput
from ..record import is_number
from .staged import COMPACT, COMPRESS, StagedCompactor

WorkingSummaryMode: TypeAlias = Literal["compact", "compress", "auto"]


class ShortTermSettings(Struct, frozen=True, kw_only=True):
    """How long the memory may be, and what is done if it is longer; see ``ReMeShortTermMemory``."""

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
                f"compact_ratio_threshold must be a number from 0 on, "
                f"got {self.compact_ratio_threshold!r}"
            )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InvalidInput(f"{name} must be a whole number from {least} on, got {value!r}")
        group = self.group_token_threshold
        if group is not None and (type(group) is not int or group < 0):
            raise InvalidInput(f"group_token_threshold must be a whole number, got {group!r}")

    def compactor(self, archive: Archive, meter: Meter, summariser: Summariser | None) -> Compactor:
        """Return what does it. Once it has to, everything goes that may: the next time is far."""
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


_LEAST = {
    "max_total_tokens": 1,
    "max_tool_message_tokens": 0,
    "keep_recent_count": 0,
    "preview_char_length": 0,
}
