"""For all tests."""

import os

# One process for each command: tests run side by side. Those of several processes say so.
os.environ["RAGWITNESS_WORKERS"] = "1"
