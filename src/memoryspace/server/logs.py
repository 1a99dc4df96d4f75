"""The log of a server: a JSON object a line, with the id of the request it is about."""

from __future__ import annotations

import json
import logging
import sys

_FIELDS = ("request_id", "method", "route", "status", "ms", "key")  # those of a request


class JSONLines(logging.Formatter):
    """Writes a record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_as_json(level: str) -> None:
    """Write the log to standard error.

    Libraries log from ``warning`` on: what they say below that may hold what users said.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines())
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    logging.getLogger("memoryspace").setLevel(level.upper())
