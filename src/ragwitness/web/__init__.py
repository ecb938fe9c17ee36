"""Pages over run folders: what was found, what it rests on, what it cost. They only read."""

from __future__ import annotations

from ragwitness.web.app import create_app
from ragwitness.web.server import serve

__all__ = ["create_app", "serve"]
