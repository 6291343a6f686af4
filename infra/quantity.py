"""Kubernetes' way to write an amount: `20Gi`, `500m`, `1.5G`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator

SMALLEST_BYTES = 2**20
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTP", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTP", start=1)},
}


def amount(text: str) -> Decimal:
    """The amount as a number: bytes, or processors. Raises ValueError for what Kubernetes would not read either."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"should be an amount such as 20Gi, 500m or 2, not {text!r}")
    return Decimal(found[1]) * _FACTORS[found[2] or ""]


def _positive(text: str) -> str:
    if amount(text) <= 0:
        raise ValueError(f"should be more than nothing, not {text!r}")
    return text


def _bytes(text: str) -> str:
    if amount(text) < SMALLEST_BYTES or amount(text) % 1:
        raise ValueError(f"should be an amount of at least a mebibyte, with its unit, such as 20Gi, not {text!r}")
    return text


Quantity = Annotated[str, AfterValidator(_positive)]
"""A text that Kubernetes reads as an amount above zero."""

Size = Annotated[str, AfterValidator(_positive), AfterValidator(_bytes)]
"""An amount of memory or storage. `2` would be two bytes, and `100m` a tenth of one, which Kubernetes takes."""
