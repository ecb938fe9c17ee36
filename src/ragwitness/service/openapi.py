"""The service's OpenAPI document, from the very models that check its requests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_ERRORS = {
    "400": "The request is unusable.",
    "401": "The key is missing, unknown or revoked.",
    "429": "A meter or the key's rate has no room; see Retry-After.",
    "503": "The database does not answer.",
}


def openapi(paths: dict[str, tuple[str, str, type[BaseModel] | None, bool]]) -> dict[str, Any]:
    """Return the document (OpenAPI 3.1).

    Args:
        paths: By path: method, what it does, the model of its body, and whether a key is needed.
    """
    schemas: dict[str, Any] = {}
    described: dict[str, Any] = {}
    for path, (method, does, body, keyed) in paths.items():
        operation: dict[str, Any] = {"summary": does, "responses": {"200": {"description": does}}}
        if keyed:
            operation["security"] = [{"key": []}]
            operation["responses"] |= {
                status: {"description": why} for status, why in _ERRORS.items()
            }
        if body is not None:
            schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= schema.pop("$defs", {})
            schemas[body.__name__] = schema
            named = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
            operation["requestBody"] = {"required": True, "content": {"application/json": named}}
        described[path] = {method.lower(): operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Retrieval with a metered guarantee", "version": "1"},
        "paths": described,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
