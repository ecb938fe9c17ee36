"""Private retrieval in front of a retriever, and a service as its example (extra ``[service]``).

The tenant follows from the key, and retrieval adds its noise before it selects. Three meters (of
the account, of its payer and of the whole index) are charged and stored before anything leaves.
"""

from importlib.util import find_spec

from ragwitness.core.errors import MissingExtraError

if find_spec("sqlalchemy") is None:
    raise MissingExtraError("The service", "service")
