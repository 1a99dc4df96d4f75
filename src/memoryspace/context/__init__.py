"""The context as virtual memory: what is resident fits the window, what left can be had back."""

from .archive import Archive, Kept, Kind, Parcel
from .compactor import Compacted, Compactor
from .draft import Draft, Leave
from .extractive import ExtractiveSummary
from .file_archive import FileArchive
from .history import Group
from .limits import Limits
from .losses import Loss, LossReport
from .meter import Meter
from .model_summary import ModelSummary, SummaryFields
from .pages import Pages
from .ram_archive import RAMArchive
from .reader import PageReader
from .steps import DEFAULT_STEPS, Step
from .summary import Summariser

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
