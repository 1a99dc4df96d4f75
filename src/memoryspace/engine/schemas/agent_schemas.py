"""The message schema, where the runtime has it."""

from ...service.schema import *  # noqa: F403  # an alias of the whole of it
from ...service.schema import __all__ as __all__
