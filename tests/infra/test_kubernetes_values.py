"""What Kubernetes would refuse in the middle of an update is refused before, and nothing that it takes is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from infra.kubernetes_values import EntryKey, Host, LabelKey, Labels, Name, ObjectName, Repository, Tag
from infra.quantity import Size

ALNUM = st.sampled_from("abzAZ09")
INNER = st.text(st.sampled_from("abzAZ09-_."), max_size=61)
WORDS = st.builds(lambda first, inner, last: first + inner + last, ALNUM, INNER, ALNUM)


def problem(kind: Any, value: object) -> str | None:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return str(error.errors()[0]["msg"])
    return None


@given(WORDS, WORDS | st.just(""))
def test_every_label_that_kubernetes_takes_is_taken(key: str, value: str) -> None:
    assert problem(Labels, {key: value, f"example.com/{key}": value}) is None


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        (Name, "qdrant-1"),
        (ObjectName, "gp3.csi.example"),
        (ObjectName, "letsencrypt-prod"),
        (EntryKey, "api-key"),
        (EntryKey, ".dockerconfigjson"),
        (Host, "qdrant.example.com"),
        (Host, "*.example.com"),
        (LabelKey, "node-role.kubernetes.io/control-plane"),
        (Repository, "docker.io/qdrant/qdrant"),
        (Repository, "registry.example:5000/team_a/comemory--ops"),
        (Repository, "qdrant"),
        (Tag, "v1.19.1-unprivileged"),
        (Size, "20Gi"),
        (Size, "1.5G"),
        (Size, "2147483648"),
    ],
)
def test_good_values(kind: Any, good: str) -> None:
    assert problem(kind, good) is None


@pytest.mark.parametrize(
    ("kind", "bad", "said"),
    [
        (Name, "a.b", "pattern"),
        (ObjectName, "My_Secret", "small letters"),
        (ObjectName, "a..b", "small letters"),
        (ObjectName, "a" * 254, "small letters"),
        (ObjectName, "a\n", "small letters"),
        (EntryKey, "api key", "letters, digits"),
        (Host, "https://qdrant.example.com", "a host name"),
        (Host, "qdrant.example.com/", "a host name"),
        (LabelKey, "https://x/y", "before the /"),
        (LabelKey, "", "up to 63"),
        (LabelKey, "example.com/", "up to 63"),
        (Labels, {"team": "a b"}, "team: the value 'a b'"),
        (Labels, {"team": "a" * 64}, "team: the value"),
        (Labels, {"team": "-a"}, "team: the value"),
        (Labels, {"-team": "a"}, "'-team'"),
        (Repository, "qdrant/qdrant:v1", "without tag"),
        (Repository, f"qdrant@sha256:{'0' * 64}", "without tag"),
        (Repository, "https://registry.example/qdrant", "without tag"),
        (Repository, "Team/Qdrant", "without tag"),
        (Tag, "a/b", "a tag"),
        (Size, "2", "at least a mebibyte"),
        (Size, "100m", "at least a mebibyte"),
        (Size, "1024.0001Mi", "at least a mebibyte"),
        (Size, "20GB", "should be an amount"),
    ],
)
def test_bad_values_are_refused_and_named(kind: Any, bad: object, said: str) -> None:
    told = problem(kind, bad)
    assert told is not None and said in told
