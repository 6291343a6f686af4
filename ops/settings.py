"""The settings of the daemon and the command line, as types. `ops.settings_source` reads them, and `ops.files`
what they name.

Every field has a default and a description; `docs/settings.md` is made from them. A key that is not known is
refused, since a misspelt limit would otherwise be no limit at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from comemory.naming import CollectionName
from ops.values import Address, CronTime, Duration, ZoneName

ENVIRONMENT_PREFIX = "COMEMORY_"
DuplicatePolicy = Literal["source", "content"]
Scope = Literal["docs", "messages", "memory", "artifacts", "signals"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Schedule(_Section):
    """When a job runs: `cron` (five fields) or `every`; neither means only when asked for."""

    cron: CronTime | None = Field(
        None,
        description="Five cron fields, such as `15 3 * * *`; of a day and a weekday (0 is Sunday, or `sun`) both "
        "must hold.",
    )
    every: Duration | None = Field(None, gt=timedelta(0), description="An interval, such as `15m`.")
    jitter: Duration = Field(
        timedelta(0), ge=timedelta(0), description="A run starts at a random moment up to this much later."
    )
    zone: ZoneName = Field("UTC", description="The time zone of `cron`.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.cron is not None and self.every is not None:
            raise ValueError("give `cron` or `every`, not both")
        if self.cron is None and self.every is None and self.model_fields_set & {"jitter", "zone"}:
            raise ValueError("give `cron` or `every`, too; without them the job would never run by itself")
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


class _Deleting(_Section):
    batch: int = Field(2000, ge=1, le=100_000, description="Points deleted by one request, at most.")
    points_per_second: float | None = Field(
        20_000, gt=0, description="Highest speed of deletion, so that readers are not starved; null: no limit."
    )


class _DeletingJob(_Job, _Deleting):
    max_points: int | None = Field(
        None, ge=1, description="Points deleted by one run, at most; the next run goes on. Null: no limit."
    )


class QdrantSettings(_Section):
    """Where Qdrant is, and how patient to be with it."""

    url: Address = Field("http://127.0.0.1:6333", description="The REST endpoint.")
    api_key: SecretStr | None = Field(
        None, description="The API key. Prefer `api_key_file`: a file is not seen in a process list."
    )
    api_key_file: Path | None = Field(None, description="A file that holds the API key.")
    ca_file: Path | None = Field(None, description="Certificate authorities to trust; null: the system's.")
    timeout: float = Field(60, gt=0, description="Seconds that one request may take.")
    retry_for: float = Field(30, ge=0, description="Seconds during which a busy or absent server is asked again.")

    @field_validator("url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^/@\s]+/?", value):
            raise ValueError(
                "should be http:// or https://, a host and perhaps a port; a path has no place in it, and a key or "
                "password goes to api_key_file"
            )
        return value

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.api_key is not None and self.api_key_file is not None:
            raise ValueError("give api_key or api_key_file, not both")
        return self


class CollectionsSettings(_Section):
    """Which collections are looked after. Others on the same server are never touched."""

    include: tuple[str, ...] = Field(
        (),
        description="Names, or aliases, looked after; empty: every collection named `cm_<type>_<dim>_v<version>`.",
    )
    exclude: tuple[str, ...] = Field((), description="Names, or aliases, left alone although they are included.")
    types: tuple[str, ...] = Field(("text", "code", "mm"), description="The types that a collection name may have.")
    declared: Path | None = Field(
        None, description="A YAML list of declared collections, as in the stack; drift is measured against it."
    )

    def followed(self, aliases: Mapping[str, str]) -> Self:
        """The same with each alias replaced by the collection that it names, as `ours` needs it.

        Args:
            aliases: Alias to collection, as the server has them now.
        """
        include, exclude = (
            tuple(aliases.get(name, name) for name in names) for names in (self.include, self.exclude)
        )
        return self.model_copy(update={"include": include, "exclude": exclude})

    def ours(self, name: str) -> bool:
        """Whether a collection of this name (no alias) is looked after."""
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


class TenantSettings(_Deleting):
    """`comemory tenant erase`: removes what a tenant, or one owner in it, stored."""

    log_file: Path = Field(
        Path("~/.local/state/comemory/erasures.jsonl"),
        description="Where each erasure is recorded, one line when it begins and one when it ends; only appended "
        "to. Without a record nothing is erased.",
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
    tenant: TenantSettings = Field(default_factory=TenantSettings, description="Erasure of tenants.")
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
