"""One line of JSON per request: who asked, what came of it, how long it took.

What was asked and what was answered never stand there: an attest window's log has its own place.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("ragwitness.service")

_FIELDS = "ragwitness_fields"


class JsonLines(logging.Formatter):
    """Formats records of :data:`LOGGER`; other libraries' lines lose their arguments.

    An exception is told by its type and place: its message may quote a query.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg),
        }
        line |= getattr(record, _FIELDS, {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = place_of(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True, default=str)


def say(event: str, fields: Mapping[str, object]) -> None:
    """Log an event with its fields."""
    LOGGER.info(event, extra={_FIELDS: dict(fields)})


def place_of(error: BaseException) -> str:
    """Return type and place of an exception, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def write_to_stderr() -> None:
    """Send the log of this process, uvicorn's included, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(logging.INFO)
