"""The context as virtual memory: what is resident fits the window, what left can be had back."""

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
