"""Images, audio and video: their location, and the text that replaces them.

Nothing is read from disk or fetched, whatever an address says: it may be untrusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .plain import plain_text

KINDS = ("image", "audio", "video")

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+", re.ASCII)
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.ASCII)
_WEB = re.compile(r"https?://[^\s\x00-\x1f\x7f]+")
_ALIASES = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav"}
_LONGEST_ADDRESS = 300


class Media(NamedTuple):
    """An image, audio clip or video: its data in base64, its address, or neither."""

    kind: str  # image, audio or video
    media_type: str = ""
    data: str = ""
    address: str = ""

    @property
    def is_inline(self) -> bool:
        """Whether the data is included."""
        return bool(self.data)

    @property
    def is_on_the_web(self) -> bool:
        """Whether a provider can fetch it."""
        return _WEB.fullmatch(self.address) is not None

    @property
    def url(self) -> str:
        """A data URL or the address; only if the media is inline or on the web."""
        return f"data:{self.media_type};base64,{self.data}" if self.data else self.address

    @property
    def stub(self) -> str:
        """The text that replaces the media."""
        if self.data:
            return f"[{self.kind}, {self.media_type}, {len(self.data):,} characters, not shown]"
        if not self.address:
            return f"[{self.kind} without data]"
        short = self.address[:_LONGEST_ADDRESS]
        return f"The {self.kind} can be found at: {short}{'…' if short != self.address else ''}"


def media_of(block: Mapping[str, Any]) -> Media:
    """Read a block of one of the ``KINDS``. A malformed block gives media without data."""
    kind, source = str(block["type"]), block.get("source")
    if not isinstance(source, dict):
        return Media(kind)
    if source.get("type") == "base64":
        return _inline(kind, source.get("media_type"), source.get("data"))
    return _at(kind, source.get("url"))


def _inline(kind: str, media_type: Any, data: Any) -> Media:
    if not isinstance(media_type, str) or not isinstance(data, str):
        return Media(kind)
    bare = media_type.partition(";")[0].strip().lower()
    compact = "".join(data.split())
    is_media = bare.startswith(f"{kind}/") and _MEDIA_TYPE.fullmatch(bare)
    is_base64 = len(compact) % 4 == 0 and _BASE64.fullmatch(compact)
    return Media(kind, _ALIASES.get(bare, bare), compact) if is_media and is_base64 else Media(kind)


def _at(kind: str, url: Any) -> Media:
    if not isinstance(url, str):
        return Media(kind)
    inline = _DATA_URL.match(url)
    if inline:
        return _inline(kind, inline[1], url[inline.end() :])
    return Media(kind) if url.startswith("data:") else Media(kind, address=plain_text(url))
