"""The settings of the daemon and the command line: one YAML file, the environment over it, secrets from files.

Every field has a default and a description; `docs/settings.md` is made from them. A key that is not known is
refused, since a misspelt limit would otherwise be no limit at all.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from apscheduler.triggers.cron import CronTrigger
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableVariable

from comemory.naming import CollectionName
from ops.errors import SettingsError

ENVIRONMENT_PREFIX = "COMEMORY_"
DuplicatePolicy = Literal["source", "content"]
Scope = Literal["docs", "messages", "memory", "artifacts", "signals"]


def _cron(expression: str) -> str:
    CronTrigger.from_crontab(expression)
    return expression


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(
            f"'{name}' is not a time zone of the IANA database, such as 'Europe/Kyiv' or 'UTC'"
        ) from None
    return name


def _address(url: str) -> str:
    try:
        port = urlsplit(url).port
    except ValueError as error:
        raise ValueError(f"it is no address: {error}") from None
    if port == 0:
        raise ValueError("it is no address: port 0")
    return url


def _readable(value: object) -> object:
    """The environment has texts only: `90` is seconds there too; `90s`, `15m`, `36h` and `7d` are for people."""
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())) is not None:
        try:
            return timedelta(**{_UNITS[match[2] or "s"]: float(match[1])})
        except OverflowError:
            raise ValueError("it is longer than a duration can be") from None
    return value


_DURATION = re.compile(r"(\d+(?:\.\d+)?)([dhms]?)", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
Duration = Annotated[timedelta, BeforeValidator(_readable)]
"""A duration: `7d`, `36h`, `15m`, `90s`, a number of seconds, or ISO 8601 such as `P7D`."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Schedule(_Section):
    """When a job runs: `cron` (five fields) or `every`; neither means only when asked for."""

    cron: Annotated[str, AfterValidator(_cron)] | None = Field(
        None, description="Five cron fields, such as `15 3 * * *`."
    )
    every: Duration | None = Field(None, gt=timedelta(0), description="An interval, such as `15m`.")
    jitter: Duration = Field(
        timedelta(0), ge=timedelta(0), description="A run starts at a random moment up to this much later."
    )
    zone: Annotated[str, AfterValidator(_zone)] = Field("UTC", description="The time zone of `cron`.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.cron is not None and self.every is not None:
            raise ValueError("give `cron` or `every`, not both")
        return self


def _every(minutes: int) -> Schedule:
    return Schedule(every=timedelta(minutes=minutes), jitter=timedelta(seconds=30))


def _nightly(hour: int) -> Schedule:
    return Schedule(cron=f"15 {hour} * * *", jitter=timedelta(minutes=10))


class _Job(_Section):
    enabled: bool = Field(True, description="Whether the daemon runs this job; the command line always can.")
    max_seconds: float | None = Field(
        None, gt=0, description="A run ends at the next batch boundary after this many seconds; null: no limit."
    )


class _DeletingJob(_Job):
    batch: int = Field(2000, ge=1, le=100_000, description="Points deleted by one request, at most.")
    max_points: int | None = Field(
        None, ge=1, description="Points deleted by one run, at most; the next run goes on. Null: no limit."
    )
    points_per_second: float | None = Field(
        20_000, gt=0, description="Highest speed of deletion, so that readers are not starved; null: no limit."
    )


class QdrantSettings(_Section):
    """Where Qdrant is, and how patient to be with it."""

    url: Annotated[str, AfterValidator(_address)] = Field(
        "http://127.0.0.1:6333", pattern=r"^https?://[^/@\s]+/?$", description="The REST endpoint."
    )
    api_key: SecretStr | None = Field(
        None, description="The API key. Prefer `api_key_file`: a file is not seen in a process list."
    )
    api_key_file: Path | None = Field(None, description="A file that holds the API key.")
    ca_file: Path | None = Field(None, description="Certificate authorities to trust; null: the system's.")
    timeout: float = Field(60, gt=0, description="Seconds that one request may take.")
    retry_for: float = Field(30, ge=0, description="Seconds during which a busy or absent server is asked again.")


class CollectionsSettings(_Section):
    """Which collections are looked after. Others on the same server are never touched."""

    include: tuple[str, ...] = Field(
        (), description="Names looked after; empty: every collection named `cm_<type>_<dim>_v<version>`."
    )
    exclude: tuple[str, ...] = Field((), description="Names left alone although they are included.")
    types: tuple[str, ...] = Field(("text", "code", "mm"), description="The types that a collection name may have.")
    declared: Path | None = Field(
        None, description="A YAML list of declared collections, as in the stack; drift is measured against it."
    )

    def ours(self, name: str) -> bool:
        """Whether a collection of this name is looked after."""
        if name in self.exclude:
            return False
        if self.include:
            return name in self.include
        try:
            CollectionName.parse(name, types=self.types)
        except ValueError:
            return False
        return True


class RetentionSettings(_DeletingJob):
    """The `ttl` job: deletes what outlived its `ttl_days`."""

    schedule: Schedule = Field(_every(60), description="When it runs.")
    grace: Duration = Field(
        timedelta(0), ge=timedelta(0), description="How much longer than its time a point stays."
    )
    exempt_tags: tuple[str, ...] = Field(
        ("legal_hold",), description="A point with one of these tags never expires."
    )


class DedupSettings(_DeletingJob):
    """The `dedup` job: removes copies within one access domain."""

    schedule: Schedule = Field(_every(360), description="When an incremental run starts.")
    full_schedule: Schedule = Field(_nightly(4), description="When a full run starts.")
    policies: dict[Scope, DuplicatePolicy] = Field(
        {"memory": "content"},
        description="Per scope, what makes two points copies: `content` (the fingerprint) or `source` (also the "
        "source and the chunk). Scopes not named use `source`.",
    )
    exempt_tags: tuple[str, ...] = Field(
        ("legal_hold",), description="A point with one of these tags is never deleted."
    )
    state_file: Path | None = Field(
        None,
        description="Where it is kept up to when each collection is done, for incremental runs; null: in the "
        "memory of the daemon, whose first run is then a full one.",
    )


class AuditSettings(_Job):
    """The `audit` job: counts payloads that break the schema."""

    schedule: Schedule = Field(_every(60), description="When the counting run starts.")
    deep_schedule: Schedule = Field(_nightly(5), description="When every payload is read and validated.")
    samples: int = Field(5, ge=0, le=100, description="Ids shown per reason.")
    lenient: bool = Field(
        False,
        description="Let the deep run pass what only readers accept: shortened ULIDs, any fingerprint, and every "
        "spelling of a time that Qdrant reads.",
    )


class CensusSettings(_Job):
    """The `census` job: counts what is there, for the metrics."""

    schedule: Schedule = Field(_every(1), description="When it runs.")
    max_tenants: int = Field(
        1000, ge=1, description="Tenants with series of their own, largest first; the rest is `__other__`."
    )


class HttpSettings(_Section):
    """Where `/metrics`, `/healthz`, `/readyz` and `/status` are served."""

    host: str = Field("127.0.0.1", description="The address to bind; loopback unless changed.")
    port: int = Field(9464, ge=0, le=65535, description="The port; 0 takes a free one.")
    token_file: Path | None = Field(None, description="A file with the bearer token asked for; null: none.")
    tls_certificate: Path | None = Field(None, description="A PEM certificate; with `tls_key`, serves https.")
    tls_key: Path | None = Field(None, description="The PEM key of `tls_certificate`.")

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: give both or neither")
        return self


class LeaseSettings(_Section):
    """Which of several daemons works. Two without a lease do no harm, but do the work twice."""

    kind: Literal["none", "file", "kubernetes"] = Field("none", description="How the lease is held.")
    path: Path = Field(Path("/var/run/comemory/lease"), description="The file locked, for `file`.")
    name: str = Field("comemory", description="The Lease object, for `kubernetes`.")
    namespace: str | None = Field(None, description="Its namespace; null: the pod's own.")
    duration: Duration = Field(
        timedelta(seconds=30), ge=timedelta(seconds=5), description="A holder that is silent so long has lost it."
    )


class LogSettings(_Section):
    """Logs: one event per batch and per run; never content, never a key."""

    format: Literal["json", "console"] = Field("json", description="`json` for machines, `console` for people.")
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least severe event shown.")


class Settings(BaseSettings):
    """Everything the daemon and the command line can be told."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
    )

    qdrant: QdrantSettings = Field(default_factory=QdrantSettings, description="Qdrant.")
    collections: CollectionsSettings = Field(default_factory=CollectionsSettings, description="Collections.")
    ttl: RetentionSettings = Field(default_factory=RetentionSettings, description="Retention.")
    dedup: DedupSettings = Field(default_factory=DedupSettings, description="Deduplication.")
    audit: AuditSettings = Field(default_factory=AuditSettings, description="Audit.")
    census: CensusSettings = Field(default_factory=CensusSettings, description="Census.")
    http: HttpSettings = Field(default_factory=HttpSettings, description="HTTP.")
    lease: LeaseSettings = Field(default_factory=LeaseSettings, description="Lease.")
    log: LogSettings = Field(default_factory=LogSettings, description="Logs.")
    shutdown_seconds: float = Field(
        20, gt=0, description="After SIGTERM the batch under way may take this long before the process ends."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment goes over the file, which is handed in as arguments."""
        return env_settings, init_settings


def load(path: Path | None = None) -> Settings:
    """Read the settings from a YAML file (or `COMEMORY_SETTINGS`, or none) and the environment.

    Raises:
        SettingsError: naming each key that is wrong, its value's fault, and the file it stands in.
    """
    if path is None and (named := os.environ.get("COMEMORY_SETTINGS")):
        path = Path(named)
    values = {} if path is None else _read_yaml(path)
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except ValidationError as error:
        where = f"{path} and the environment" if path else "the environment"
        faults = "\n".join(f"  {_key(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_input=False))
        raise SettingsError(f"The settings in {where} are not usable:\n{faults}") from None
    except UnreadableVariable as error:
        raise SettingsError(f"The settings in the environment are not usable: {error}.") from None


def read_secret(value: SecretStr | None, file: Path | None, name: str) -> SecretStr | None:
    """The secret itself, or what its file holds; None when neither is set.

    Raises:
        SettingsError: the file cannot be read or is empty.
    """
    if file is None:
        if value is not None and not _sendable(value.get_secret_value()):
            raise SettingsError(f"{name}: {_UNSENDABLE}")
        return value
    try:
        text = file.read_bytes().decode("utf-8", errors="replace").strip()
    except OSError as error:
        raise SettingsError(f"{name}_file: cannot read {file}: {error.strerror}.") from None
    if not text:
        raise SettingsError(f"{name}_file: {file} is empty; it must hold the secret.")
    if not _sendable(text):
        raise SettingsError(f"{name}_file: {file}: {_UNSENDABLE}")
    return SecretStr(text)


_UNSENDABLE = "a secret is one line of printable ASCII characters, and this is not."


def _sendable(secret: str) -> bool:
    """Whether it can stand in a header; the error of a library that refuses it would show it."""
    return secret.isascii() and secret.isprintable() and secret == secret.strip()


def _refuse_unknown_variables() -> None:
    """A misspelt section in the environment would be ignored by the settings source; it is a fault all the same."""
    for name in os.environ:
        section, nested, _ = name.removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if name.startswith(ENVIRONMENT_PREFIX) and nested and section.lower() not in Settings.model_fields:
            raise SettingsError(
                f"The environment variable {name} names no setting: there is no section '{section.lower()}'. "
                f"Sections are {', '.join(Settings.model_fields)}."
            )


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not text in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise SettingsError(
            f"The settings file {path} is not YAML{line}: {getattr(error, 'problem', error)}."
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"The settings file {path} must hold keys and values, not a {type(values).__name__}.")
    if odd := [key for key in values if not isinstance(key, str)]:
        raise SettingsError(f"The settings file {path} has the key {odd[0]!r}, which is no name of a setting.")
    return values


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "(all)"
