"""The provider's schema, made from the models that check the same properties, so that the two cannot differ.

`schema.json` beside this module is the committed result (`python -m infra.provider.schema`), for people and
for tools that read it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from comemory.catalog import CollectionSpec
from comemory.specs import Spec
from infra.provider.access_token import AccessTokenHandler, AccessTokenSpec
from infra.provider.alias import AliasHandler, AliasSpec
from infra.provider.api_key import ApiKeyHandler, ApiKeySpec
from infra.provider.cluster_guard import ClusterGuardHandler, ClusterGuardSpec
from infra.provider.collection import CollectionHandler
from infra.provider.connection import DEFAULT_TIMEOUT_SECONDS
from infra.provider.payload_index import PayloadIndexHandler, PayloadIndexSpec
from infra.provider.port_forward import KubernetesService
from infra.provider.rollout import RolloutHandler, RolloutSpec
from infra.provider.version import VERSION

PACKAGE = "qdrant"
COMMITTED = Path(__file__).with_name("schema.json")

_CONFIG: dict[str, dict[str, Any]] = {
    "url": {
        "type": "string",
        "description": "Address of the REST interface, such as http://localhost:6333. Default: QDRANT_URL.",
    },
    "api_key": {
        "type": "string",
        "secret": True,
        "description": "API key with manage access. Default: QDRANT_API_KEY, which is then in no state file.",
    },
    "timeout": {
        "type": "number",
        "description": f"Seconds that one request may take. Default: {DEFAULT_TIMEOUT_SECONDS:g}.",
    },
    "tls_ca": {
        "type": "string",
        "description": "Certificate authority of the server: path of a PEM file, or the PEM text.",
    },
    "kubernetes": {
        "$ref": "#/types/qdrant:index:KubernetesService",
        "secret": True,
        "description": "A Service on Kubernetes, reached by a port-forward of the provider's own. url then says "
        "the scheme and the name that the certificate is checked against; default: http, or https with tls_ca, "
        "and service.namespace.svc.",
    },
    "owner": {
        "type": "string",
        "description": "Name that marks collections as this stack's. Default: project/stack. "
        "Set it to the old name after renaming a stack.",
    },
}

_OWNER = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "The ownership marks in the collection's metadata: managed_by, stack, schema_version, "
    "deletion_policy.",
}

_TOKEN = {
    "token": {"type": "string", "secret": True, "description": "The token, sent as `api-key` or bearer token."},
    "expires_at": {"type": "string", "description": "When the server takes it no longer, RFC 3339."},
}

_KEY = {
    "value": {"type": "string", "secret": True, "description": "The key."},
    "fingerprint": {"type": "string", "description": "Beginning of the key's SHA-256; it changes with the key."},
}

RESOURCES: dict[str, tuple[type[Spec], type, dict[str, Any], str]] = {
    "Collection": (
        CollectionSpec,
        CollectionHandler,
        {"owner": _OWNER},
        "A collection with named vectors. Its id is its name. Size, distance, datatype, multivector and "
        "sharding can never be "
        "changed in place: declare the next version.",
    ),
    "PayloadIndex": (
        PayloadIndexSpec,
        PayloadIndexHandler,
        {},
        "A payload index. Its id is collection/field. A change of type or parameters drops it and builds it anew.",
    ),
    "Alias": (
        AliasSpec,
        AliasHandler,
        {},
        "Another name for a collection. Its id is the alias. Another collection moves it in one step.",
    ),
    "ApiKey": (
        ApiKeySpec,
        ApiKeyHandler,
        _KEY,
        "A random key, secret in the state, the same until its generation is raised.",
    ),
    "ClusterGuard": (
        ClusterGuardSpec,
        ClusterGuardHandler,
        {},
        "Remembers what a cluster on Kubernetes was last made with, and refuses what would lose data or cannot be "
        "done. It changes nothing on a server.",
    ),
    "Rollout": (
        RolloutSpec,
        RolloutHandler,
        {},
        "Waits until every pod of a StatefulSet is ready with the newest of its templates; another revision waits "
        "again. It changes nothing.",
    ),
    "AccessToken": (
        AccessTokenSpec,
        AccessTokenHandler,
        _TOKEN,
        "A JSON Web Token that the server takes in place of a key (it needs service.jwt_rbac). A token always has "
        "an access claim, is secret, and is made anew before it ends.",
    ),
}
"""Per resource: the model of its inputs, what handles it, what it has beyond its inputs, and its description."""


def token(resource: str) -> str:
    """The type token: `qdrant:index:Collection`."""
    return f"{PACKAGE}:index:{resource}"


def schema() -> dict[str, Any]:
    """The schema as Pulumi reads it (https://www.pulumi.com/docs/iac/extending-pulumi/schema/)."""
    types: dict[str, Any] = {token("KubernetesService"): _object(KubernetesService.model_json_schema())}
    resources: dict[str, Any] = {}
    for name, (model, _, computed, description) in RESOURCES.items():
        described = model.model_json_schema()
        for type_name, definition in described.get("$defs", {}).items():
            types[token(type_name)] = _object(definition)
        inputs = _object(described)
        for key in {"api_key", "kubernetes"} & inputs["properties"].keys():
            inputs["properties"][key]["secret"] = True
        resources[token(name)] = {
            "description": description,
            "inputProperties": inputs["properties"],
            "requiredInputs": inputs["required"],
            "properties": {**inputs["properties"], **computed},
            "required": [*inputs["required"], *computed],
        }
    return {
        "name": PACKAGE,
        "version": VERSION,
        "description": "Collections, payload indexes, aliases and access tokens of Qdrant.",
        "config": {"variables": _CONFIG},
        "provider": {"inputProperties": _CONFIG, "properties": {}},
        "types": types,
        "resources": resources,
    }


def _object(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        **({"description": definition["description"]} if "description" in definition else {}),
        "properties": {name: _property(value) for name, value in definition.get("properties", {}).items()},
        "required": sorted(definition.get("required", [])),
    }


def _property(value: dict[str, Any]) -> dict[str, Any]:
    described = {"description": value["description"]} if "description" in value else {}
    return {**_type(value), **described}


def _type(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value:
        return {"$ref": f"#/types/{token(value['$ref'].rsplit('/', 1)[1])}"}
    if "anyOf" in value:
        options = [_type(option) for option in value["anyOf"] if option.get("type") != "null"]
        return options[0] if len(options) == 1 else {"oneOf": options}
    kind = value.get("type") or {str: "string", bool: "boolean"}[type(value["const"])]
    if kind == "array":
        return {"type": "array", "items": _type(value["items"])}
    if kind == "object":
        items = value.get("additionalProperties")
        any_value = {"$ref": "pulumi.json#/Any"}
        return {
            "type": "object",
            "additionalProperties": _type(items) if isinstance(items, dict) and items else any_value,
        }
    return {"type": kind}


def text() -> str:
    """The schema as it is committed."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    COMMITTED.write_text(text())
    sys.stdout.write(f"wrote {COMMITTED}\n")
