"""Log lines with fields, through the standard library's logging: a program that uses this package decides
where they go; unconfigured, warnings go to stderr and never into a program's output.
"""

from __future__ import annotations

import logging

import structlog
from structlog.stdlib import BoundLogger


def get_logger(name: str) -> BoundLogger:
    """The logger of a module; events are snake_case words, fields are keyword arguments."""
    logger: BoundLogger = structlog.wrap_logger(logging.getLogger(name), wrapper_class=BoundLogger)
    return logger
