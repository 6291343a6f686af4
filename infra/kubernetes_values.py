"""Values as Kubernetes takes them: names, labels, images. What it would refuse in the middle of an update, or take
for something else, is refused before.

The rules are those of Kubernetes' documentation on object names and on labels, and of the OCI distribution
specification on images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}([.]{_LABEL})*")
_WORD = re.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_HOST = re.compile(rf"([*][.])?{_LABEL}([.]{_LABEL})*")
_ENTRY = re.compile("[-._a-zA-Z0-9]{1,253}")
_REPOSITORY = re.compile(r"([a-zA-Z0-9][-.a-zA-Z0-9]*(:\d+)?/)?[a-z0-9]+([-._/][-._]*[a-z0-9]+)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
LONGEST_SUBDOMAIN = 253


def _matching(pattern: re.Pattern[str], what: str, longest: int = LONGEST_SUBDOMAIN) -> Callable[[str], str]:
    def check(text: str) -> str:
        if len(text) > longest or not pattern.fullmatch(text):
            raise ValueError(f"should be {what}, not {text!r}")
        return text

    return check


def _key(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > LONGEST_SUBDOMAIN or not _SUBDOMAIN.fullmatch(prefix)):
        raise ValueError(f"{key!r}: before the / should stand a DNS name such as example.com")
    if not _WORD.fullmatch(name):
        raise ValueError(
            f"{key!r}: should be up to 63 letters, digits, -, _ and . with a letter or digit at each end"
        )
    return key


def _keys(values: Mapping[str, str]) -> Mapping[str, str]:
    for key in values:
        _key(key)
    return values


def _labels(values: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in _keys(values).items():
        if value and not _WORD.fullmatch(value):
            raise ValueError(
                f"{key}: the value {value!r} should be up to 63 letters, digits, -, _ and . "
                "with a letter or digit at each end"
            )
    return values


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
"""A DNS label, as the objects made here are named."""
ObjectName = Annotated[
    str, AfterValidator(_matching(_SUBDOMAIN, "the name of an object: small letters, digits, - and ."))
]
"""A DNS subdomain, as objects of others may be named: Secrets, classes, issuers."""
EntryKey = Annotated[str, AfterValidator(_matching(_ENTRY, "the key of an entry: letters, digits, -, _ and ."))]
"""A key in a Secret."""
Host = Annotated[str, AfterValidator(_matching(_HOST, "a host name such as qdrant.example.com"))]
"""A host name; `*.` in front stands for any."""
LabelKey = Annotated[str, AfterValidator(_key)]
Labels = Annotated[dict[str, str], AfterValidator(_labels)]
Annotations = Annotated[dict[str, str], AfterValidator(_keys)]
Repository = Annotated[
    str,
    AfterValidator(_matching(_REPOSITORY, "a repository without tag or digest, such as docker.io/qdrant/qdrant")),
]
Tag = Annotated[str, AfterValidator(_matching(_TAG, "a tag: letters, digits, _, . and -"))]
