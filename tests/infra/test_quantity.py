"""Amounts are read as Kubernetes' own client reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from pydantic import TypeAdapter, ValidationError

from infra.quantity import Quantity, amount

UNITS = ["", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"]
NUMBERS = st.one_of(
    st.integers(0, 10**6).map(str), st.decimals(0, 10**4, places=3, allow_nan=False).map("{:f}".format)
)


@given(NUMBERS, st.sampled_from(UNITS))
def test_an_amount_is_what_the_kubernetes_client_reads(number: str, unit: str) -> None:
    assert amount(number + unit) == parse_quantity(number + unit)


@pytest.mark.parametrize("text", ["", "20GB", "20 Gi", "-1Gi", "1e3", "Gi", "1.Gi", "20gi"])
def test_what_is_no_amount_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="should be an amount") as told:
        amount(text)
    assert repr(text) in str(told.value)


def test_nothing_is_no_amount_to_ask_for() -> None:
    with pytest.raises(ValidationError, match="should be more than nothing, not '0Gi'"):
        TypeAdapter(Quantity).validate_python("0Gi")
