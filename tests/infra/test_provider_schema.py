"""The schema, the code that checks the same properties, and the classes for programs say the same."""

from __future__ import annotations

import inspect
import json

import pytest

from infra import resources
from infra.provider.connection import KEYS, Connection, check_config
from infra.provider.errors import ProviderError
from infra.provider.properties import UNKNOWN
from infra.provider.schema import COMMITTED, RESOURCES, schema, text, token


def test_the_committed_schema_is_that_of_the_code():
    assert COMMITTED.read_text() == text(), "run: python -m infra.provider.schema"


@pytest.mark.parametrize("name", RESOURCES)
def test_a_class_takes_exactly_the_inputs_of_the_schema(name):
    described = json.loads(COMMITTED.read_text())["resources"][token(name)]
    parameters = inspect.signature(getattr(resources, name).__init__).parameters
    taken = {key: value.default for key, value in parameters.items()}
    for key in ("self", "resource_name", "opts"):
        del taken[key]
    assert taken.keys() == described["inputProperties"].keys()
    assert {key for key, default in taken.items() if default is inspect.Parameter.empty} == set(
        described["requiredInputs"]
    )


def test_the_provider_class_takes_the_configuration_and_the_key_is_secret():
    taken = inspect.signature(resources.Provider.__init__).parameters.keys() - {"self", "resource_name", "opts"}
    described = schema()["provider"]["inputProperties"]
    assert taken == described.keys() == set(KEYS)
    assert [key for key, value in described.items() if value.get("secret")] == ["api_key", "kubernetes"]


def test_every_reference_of_the_schema_leads_to_a_type():
    described = schema()
    known = {f"#/types/{name}" for name in described["types"]} | {"pulumi.json#/Any"}
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                found.add(value["$ref"])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(described)
    assert found and found <= known


@pytest.mark.parametrize(
    ("values", "key", "said"),
    [
        ({"url": "localhost:6333"}, "", "qdrant:url should be an http or https URL"),
        ({"url": "http://user:S3CRET@host"}, "", "qdrant:url carries a user name or password"),
        ({"url": "http://host/?api-key=S3CRET"}, "", "qdrant:url carries a query"),
        ({"url": "http://S3CRET:port"}, "", "qdrant:url should be an http or https URL"),
        ({"api_key": "S3CRET\n"}, "", "qdrant:api_key begins or ends with a blank or a line break"),
        ({"api_key": "S3CRET\x07x"}, "", "qdrant:api_key holds a character that cannot be sent"),
        ({"api_key": "S3CRETключ"}, "", "qdrant:api_key holds a character that cannot be sent"),
        ({"timeout": "soon"}, "timeout", "'soon' is not a number of seconds above 0"),
        ({"timeout": 0}, "timeout", "0 is not a number of seconds above 0"),
        ({"api_key": 7}, "api_key", "must be a text, not int"),
        ({"apikey": "x"}, "apikey", "there is no such setting"),
    ],
)
def test_a_wrong_configuration_names_the_key(values, key, said):
    (failure,) = check_config(values)
    assert failure.property == key and said in failure.reason
    assert "S3CRET" not in failure.reason


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"QDRANT_URL": "http://user:S3CRET@host"}, "the address in qdrant:url or QDRANT_URL carries a user name"),
        (
            {"QDRANT_URL": "http://host", "QDRANT_API_KEY": "S3CRET\n"},
            "the key in qdrant:api_key or QDRANT_API_KEY begins or ends with",
        ),
    ],
)
def test_what_the_environment_says_is_checked_as_well(monkeypatch, variables, said):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ProviderError, match=said) as told:
        Connection.from_config({}).rest()
    assert "S3CRET" not in str(told.value)


def test_a_configuration_that_is_not_known_yet_is_taken_on_trust():
    assert check_config({"url": UNKNOWN, "api_key": UNKNOWN, "timeout": UNKNOWN, "tls_ca": UNKNOWN}) == []
    assert check_config({"url": "https://host:6333", "timeout": "2.5", "tls_ca": "/ca.pem"}) == []
