"""The context as virtual memory: resident messages fit the window, the rest can be read back.

- ``compactor``: ``Compactor`` brings a history within its ``Limits`` and reports what left.
- ``steps``: the compaction steps, which choose what leaves and in which order.
- ``stubs``: what stays of a message whose big parts left.
- ``summaries``: summaries of old messages, by a model or without one.
- ``meter``: token counting.
- ``archive``: where content goes when it leaves, in RAM or in files.
- ``reader``: tools with which a model reads and searches the archive.

``memoryspace.memory.ContextWindow`` is the window itself: a compactor on a working memory.
"""

from .archive import Archive, FileArchive, Kept, Parcel, RAMArchive
from .compactor import Compacted, Compactor
from .draft import Draft, Leave
from .history import Group, Pages
from .limits import Limits
from .losses import Loss, LossReport
from .meter import Meter
from .reader import PageReader
from .rendering import Kind
from .steps import DEFAULT_STEPS, Step
from .summaries import ExtractiveSummary, ModelSummary, Summariser, SummaryFields

__all__ = [
    "DEFAULT_STEPS",
    "Archive",
    "Compacted",
    "Compactor",
    "Draft",
    "ExtractiveSummary",
    "FileArchive",
    "Group",
    "Kept",
    "Kind",
    "Leave",
    "Limits",
    "Loss",
    "LossReport",
    "Meter",
    "ModelSummary",
    "PageReader",
    "Pages",
    "Parcel",
    "RAMArchive",
    "Step",
    "Summariser",
    "SummaryFields",
]
