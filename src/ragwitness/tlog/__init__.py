"""The window's log between machines: read over HTTP, and cosigned by witnesses (C2SP)."""
