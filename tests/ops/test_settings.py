"""Settings: the file, the environment over it, secrets from files, and errors that name the key."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from ops.errors import SettingsError
from ops.jobs.registry import connect
from ops.settings import Settings, load, read_secret


def write(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text)
    return file


def test_everything_has_a_default() -> None:
    settings = load()
    assert settings.qdrant.url == "http://127.0.0.1:6333"
    assert settings.ttl.exempt_tags == ("legal_hold",)
    assert settings.ttl.schedule.every == timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qdrant: {url: 'http://x:1', foo: 1}", "qdrant.foo: Extra inputs are not permitted"),
        ("ttl: {batch: 0}", "ttl.batch: Input should be greater than or equal to 1"),
        ("ttl: {schedule: {cron: 'x y'}}", "ttl.schedule.cron"),
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


def test_secrets_come_from_files_and_are_masked(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")
    secret = read_secret(None, file, "qdrant.api_key")
    assert secret is not None
    assert secret.get_secret_value() == "s3cret"
    assert "s3cret" not in repr(Settings(qdrant={"api_key": SecretStr("s3cret")}))
    file.write_text("\n")
    with pytest.raises(SettingsError, match=r"qdrant.api_key_file: .* is empty"):
        read_secret(None, file, "qdrant.api_key")
    with pytest.raises(SettingsError, match="cannot read"):
        read_secret(None, tmp_path / "absent", "qdrant.api_key")


def test_only_our_collections_are_looked_after(tmp_path: Path) -> None:
    ours = load().collections.ours
    assert ours("cm_text_1024_v1")
    assert not ours("helion_docs")
    assert not ours("cm_audio_1024_v1")
    named = load(write(tmp_path, "collections: {include: [mine, other], exclude: [other]}")).collections.ours
    assert (named("mine"), named("other"), named("cm_text_1024_v1")) == (True, False, False)


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


@pytest.mark.parametrize(
    "content",
    [b"abc\ndef", "ключ".encode(), b"\xff\xfe\x00", b"a\x00b"],
    ids=["two lines", "no ASCII", "binary", "NUL"],
)
def test_a_secret_that_no_header_can_hold_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match="one line of printable ASCII") as refused:
        read_secret(None, file, "qdrant.api_key")
    assert "abc" not in str(refused.value)
    with pytest.raises(SettingsError, match=r"qdrant\.api_key:") as refused:
        read_secret(SecretStr("abc\ndef"), None, "qdrant.api_key")
    assert "abc" not in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"1: 2\n", b"ttl: {grace: 9999999999d}\n", b"qdrant: {url: 'http://[::1'}"]
)
def test_a_file_that_libraries_stumble_over_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError):
        load(file)


def test_a_variable_that_is_no_json_and_a_missing_authority_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match=r"qdrant\.ca_file"):
        connect(Settings(qdrant={"ca_file": tmp_path / "none.pem"}))
    monkeypatch.setenv("COMEMORY_TTL__SCHEDULE", "{bad")
    with pytest.raises(SettingsError, match="ttl"):
        load()
