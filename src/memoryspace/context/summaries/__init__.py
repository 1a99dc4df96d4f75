"""Summaries of messages that left the context: by a chat model, or extracted without one."""

from .extractive import ExtractiveSummary
from .model import ModelSummary, SummaryFields
from .summary import Summariser

__all__ = ["ExtractiveSummary", "ModelSummary", "Summariser", "SummaryFields"]
