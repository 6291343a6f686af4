"""Where settings come from: the file, the environment over it, and errors that name the key."""

from pathlib import Path

import pytest

from ops.errors import SettingsError
from ops.settings_source import load


def write(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qdrant: {url: 'http://x:1', foo: 1}", "qdrant.foo: Extra inputs are not permitted"),
        ("ttl: {batch: 0}", "ttl.batch: Input should be greater than or equal to 1"),
        ("ttl: {schedule: {cron: 'x y'}}", "ttl.schedule.cron"),
        ("ttl: {schedule: {cron: '0 0 31 2 *'}}", "ttl.schedule.cron: Value error, '0 0 31 2 *' never comes"),
        ("ttl: {schedule: {cron: '1 2 * * *', every: PT1M}}", "give `cron` or `every`, not both"),
        ("ttl: {schedule: {cron: '1 2 * * *', zone: Mars/Base}}", "'Mars/Base' is not a time zone"),
        ("dedup: {policies: {bogus: content}}", "dedup.policies.bogus"),
        ("http: {tls_key: /k.pem}", "tls_certificate and tls_key go together"),
        ("qdrant: {url: 'http://user:pw@host:1'}", "qdrant.url"),
        ("bogus: 1", "bogus: Extra inputs are not permitted"),
        ("a: b: c", "is not YAML, line 1"),
        ("- 1", "must hold keys and values, not a list"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(write(tmp_path, text))
    assert said in str(caught.value)
    assert "pw" not in str(caught.value)


def test_a_schedule_in_the_file_takes_the_place_of_the_default_one(tmp_path: Path) -> None:
    schedule = load(write(tmp_path, "ttl: {schedule: {cron: '1 2 * * *'}}")).ttl.schedule
    assert (schedule.cron, schedule.every) == ("1 2 * * *", None)


def test_the_environment_goes_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMEMORY_QDRANT__TIMEOUT", "7")
    monkeypatch.setenv("COMEMORY_TTL__SCHEDULE__CRON", "1 2 * * *")
    settings = load(write(tmp_path, "qdrant: {timeout: 5, retry_for: 1}"))
    assert (settings.qdrant.timeout, settings.qdrant.retry_for) == (7, 1)
    assert settings.ttl.schedule.cron == "1 2 * * *"


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMEMORY_QDRNT__TIMEOUT", "7")
    with pytest.raises(SettingsError, match="COMEMORY_QDRNT__TIMEOUT names no setting"):
        load()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"1: 2\n", b"ttl: {grace: 9999999999d}\n", b"qdrant: {url: 'http://[::1'}"]
)
def test_a_file_that_libraries_stumble_over_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError):
        load(file)


def test_a_variable_that_is_no_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMEMORY_TTL__SCHEDULE", "{bad")
    with pytest.raises(SettingsError, match="ttl"):
        load()
