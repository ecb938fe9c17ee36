"""A multi-tenant RAG service whose guarantee is metered before every answer (extra ``[service]``).

The tenant follows from the key, retrieval adds its noise before it selects, and three meters (of
the account, of its payer and of the whole index) are charged and stored before anything leaves.
"""

from importlib.util import find_spec

from ragwitness.errors import MissingExtraError
from ragwitness.lazy import lazy_names

if find_spec("sqlalchemy") is None:
    raise MissingExtraError("The service", "service")

__all__ = ["Policy", "ServiceSettings", "Store", "create_app", "open_store", "serve"]

__getattr__ = lazy_names(
    __name__,
    {
        "Policy": "policy",
        "ServiceSettings": "settings",
        "Store": "store",
        "create_app": "app",
        "open_store": "store",
        "serve": "server",
    },
)
