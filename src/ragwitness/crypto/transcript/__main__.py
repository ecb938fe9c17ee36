"""``python -m ragwitness.crypto.transcript`` prints the JSON Schema of the log's records."""

import json

from ragwitness.crypto.transcript.records import schema

print(json.dumps(schema(), indent=1))
