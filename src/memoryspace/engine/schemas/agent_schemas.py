"""Compatibility: the runtime's path of the message schema."""

from ...service.schema import *  # noqa: F403  # an alias of the whole of it
from ...service.schema import __all__ as __all__
