"""What a single value of the settings may be."""

from datetime import timedelta

import pytest

from ops.errors import SettingsError
from ops.settings_source import load


@pytest.mark.parametrize(
    ("text", "means"),
    [("90", 90), ("90s", 90), ("1.5h", 5400), ("15m", 900), ("7d", 604800), ("P7D", 604800), ("PT15M", 900)],
)
def test_a_duration_is_read_from_the_environment(text: str, means: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMEMORY_TTL__GRACE", text)
    assert load().ttl.grace == timedelta(seconds=means)


@pytest.mark.parametrize("text", ["7 weeks", "-5", "d", "", "1e3d"])
def test_what_is_no_duration_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMEMORY_TTL__GRACE", text)
    with pytest.raises(SettingsError, match=r"ttl\.grace"):
        load()
