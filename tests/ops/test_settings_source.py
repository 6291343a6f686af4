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
        ("qdrant: {url: 'http://x:1', foo: 1}", "qdrant.foo: there is no such key"),
        ("ttl: {batch: 0}", "ttl.batch: Input should be greater than or equal to 1"),
        ("ttl: {schedule: {jitter: 5m}}", "ttl.schedule: give `cron` or `every`, too"),
        ("ttl: {schedule: {zone: Europe/Kyiv}}", "ttl.schedule: give `cron` or `every`, too"),
        ("ttl: {schedule: {cron: 'x y'}}", "ttl.schedule.cron"),
        ("ttl: {schedule: {cron: '0 0 31 2 *'}}", "ttl.schedule.cron: '0 0 31 2 *' never comes"),
        ("ttl: {schedule: {cron: '1 2 * * *', every: PT1M}}", "give `cron` or `every`, not both"),
        ("ttl: {schedule: {cron: '1 2 * * *', zone: Mars/Base}}", "'Mars/Base' is not a time zone"),
        ("dedup: {policies: {bogus: content}}", "dedup.policies.bogus"),
        ("http: {tls_key: /k.pem}", "tls_certificate and tls_key go together"),
        ("qdrant: {url: 'http://user:pw@host:1'}", "qdrant.url"),
        ("bogus: 1", "bogus: there is no such key"),
        ("ttl: {max_pionts: 1}", "ttl.max_pionts: there is no such key; did you mean max_points?"),
        ("qdrant: {url: 'http://h:1/path'}", "qdrant.url: should be http:// or https://, a host"),
        ("qdrant: {api_key: k, api_key_file: /f}", "qdrant: give api_key or api_key_file, not both"),
        ("ttl: {max_points: 5}\nttl: {batch: 6}", "line 2: the key 'ttl' stands twice"),
        ("ttl:\n  batch: 5\n  batch: 6", "line 3: the key 'batch' stands twice"),
        ("ttl: {grace: 2026-99-99}", "is not usable YAML: month must be in 1..12"),
        ("ttl: {max_points: !!int x}", "is not usable YAML: invalid literal"),
        ("[" * 3000, "is not usable YAML: it is nested too deeply"),
        ("a: b: c", "is not usable YAML, line 1"),
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
    ("name", "meant"),
    [
        ("COMEMORY_TTL_MAX_POINTS", "COMEMORY_TTL__MAX_POINTS"),
        ("COMEMORY_TTL_GRACE", "COMEMORY_TTL__GRACE"),
        ("COMEMORY_QDRANT_API_KEY_FILE", "COMEMORY_QDRANT__API_KEY_FILE"),
        ("COMEMORY_SHUTDOWN_SECOND", "COMEMORY_SHUTDOWN_SECONDS"),
    ],
)
def test_a_variable_that_misses_an_underscore_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, meant: str
) -> None:
    monkeypatch.setenv(name, "5")
    with pytest.raises(SettingsError, match=f"{name} names no setting; did you mean {meant}\\?"):
        load()


def test_variables_of_others_are_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COMEMORY_PORT", "COMEMORY_DAEMON_SERVICE_HOST", "COMEMORY_DAEMON_PORT_9464_TCP"):
        monkeypatch.setenv(name, "5")
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
    with pytest.raises(SettingsError, match=r"written as JSON.*COMEMORY_TTL__SCHEDULE"):
        load()
