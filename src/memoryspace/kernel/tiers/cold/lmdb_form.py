"""The contents of our LMDB files: a mark that identifies them, and frames by number."""

from __future__ import annotations

from struct import Struct as Layout

FORMAT = 1

# Shorter than any of our keys, so it sorts before them and does not disturb appending.
MARK_KEY = b"\0"
MARK = b"memoryspace cold "
OUR_MARK = MARK + b"%d" % FORMAT

KEY = Layout(">Q")  # big-endian: sorted as bytes is sorted as numbers
as_key = KEY.pack
