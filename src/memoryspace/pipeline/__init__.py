"""Several agents together: in a conversation, in sequence, or in parallel.

The names and signatures are those of AgentScope v1.
"""

from .hub import MsgHub
from .running import FanoutPipeline, SequentialPipeline, fanout_pipeline, sequential_pipeline
from .streaming import stream_printing_messages

__all__ = [
    "FanoutPipeline",
    "MsgHub",
    "SequentialPipeline",
    "fanout_pipeline",
    "sequential_pipeline",
    "stream_printing_messages",
]
