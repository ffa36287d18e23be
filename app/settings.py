"""What the service and the command line read from their environment."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_ROOT = Path(__file__).resolve().parents[1]
_PREFIX = "MEDLINK_"
_TEST_ONLY = frozenset({"MEDLINK_TEST_POSTGRES_URL"})


class Settings(BaseSettings):
    """Everything that can be set from outside; each field is the variable `MEDLINK_<FIELD>`."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # a database URL holds a password
    )

    host: str = "127.0.0.1"
    """Address that the service listens on."""
    port: int = Field(8000, ge=1, le=65535)
    """Port that the service listens on."""
    workers: int = Field(1, ge=1)
    """Processes that answer on the port; each has its own queue, limits and cache, all share the index in memory."""
    worker_silence_seconds: float = Field(30.0, ge=1)
    """A worker of several is replaced when its event loop or what links in it has stood still for so long."""
    data_dir: Path = Path("var")
    """Directory for what commands make: the SQLite database and the index builds."""
    database_url: str = ""
    """SQLAlchemy URL of the store; empty means SQLite in `data_dir`."""
    store_timeout_seconds: float = Field(10.0, ge=1)
    """How long the service waits for PostgreSQL to answer; loads and rebuilds wait for as long as it takes."""
    artefacts_dir: Path = _ROOT / "artefacts"
    """Directory of the shipped encoder and knowledge-base packs."""
    encoder_dir: Path | None = None
    """Encoder that `medlink index build` uses; empty means the shipped one."""
    models_dir: Path | None = None
    """Fusion model and calibration that `medlink index build` copies into a build; empty means the shipped ones."""
    threads: int | None = Field(None, ge=1)
    """Threads of the encoder and of the search; empty means the cores this process may use, shared by the workers."""
    build_poll_seconds: float = Field(2.0, gt=0)
    """How often the service looks whether another index build was activated."""
    rebuild_in_service: bool = True
    """Whether the service starts a worker for a rebuild; false where `medlink index worker` runs elsewhere."""
    rebuild_niceness: int = Field(10, ge=0, le=19)
    """How far a rebuild stands back behind who answers requests: 19 gets little done where others are always busy."""
    job_lease_seconds: float = Field(120.0, ge=1)
    """How long nothing may be heard of the worker of a job until the job is given up."""
    keep_builds: int = Field(0, ge=0)
    """Latest index builds that a rebuild leaves, besides the active one and the one before it; 0 leaves all."""
    drift_mentions: Path | None = None
    """File of mentions (.csv, .tsv, .jsonl) by which two index builds are compared; column `text`, and `id` if any."""
    open_to_loopback: bool = True
    """Whether this machine may link without a key; false behind a proxy here that does not send X-Forwarded-For."""
    max_licence_level: int = Field(9, ge=0, le=9)
    """Highest UMLS restriction level (MRSAB.SRL, 9: unknown) of a source whose names and definitions are returned."""
    max_mentions: int = Field(200, ge=1)
    """Most mentions in one `POST /link`."""
    max_bulk_mentions: int = Field(5000, ge=1)
    """Most mentions in one JSON `POST /link/bulk`."""
    max_mention_chars: int = Field(1000, ge=1)
    """Longest mention, in code points."""
    max_context_chars: int = Field(20_000, ge=1)
    """Longest context, in code points."""
    max_body_bytes: int = Field(8_000_000, ge=1024)
    """Largest request body, decompressed, that is read; of an NDJSON stream, what may come between two items."""
    body_idle_seconds: float = Field(30.0, gt=0)
    """A request is refused when nothing of its body comes for so long."""
    max_line_bytes: int = Field(262_144, ge=1024)
    """Longest line of an NDJSON stream, decompressed."""
    max_queue_mentions: int = Field(10_000, ge=1)
    """Most mentions that wait to be linked, of all requests together; a request that does not fit is refused."""
    max_together: int = Field(64, ge=1)
    """Most mentions linked in one go, which is what another request may have to wait for."""
    answer_cache_bytes: int = Field(64_000_000, ge=0)
    """Memory for answers already given, by mention, context and options; none of it outlives the process."""
    request_deadline_seconds: float = Field(120.0, gt=0)
    """Longest time for the answer to one request; a stream has none."""
    stream_idle_seconds: float = Field(300.0, gt=0)
    """A stream ends when its client neither sends nor reads for so long."""
    drain_seconds: float = Field(20.0, ge=0)
    """Time that requests have to finish when the service is told to stop."""
    drain_notice_seconds: float = Field(1.0, ge=0)
    """How long a stopping service still takes connections, to answer 503, so that a balancer sees it leave."""
    log_format: Literal["json", "text"] = "json"
    """Log lines as JSON, or for a person to read."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least level of the log lines that are written."""
    tracing: bool = False
    """Send spans to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; needs the `tracing` extra."""

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_variables(cls, values: dict[str, Any]) -> dict[str, Any]:
        # pydantic-settings passes over a misspelt variable in silence.
        known = {f"{_PREFIX}{field}".upper() for field in cls.model_fields} | _TEST_ONLY
        unknown = sorted(v for v in os.environ if v.upper().startswith(_PREFIX) and v.upper() not in known)
        if unknown:
            raise ValueError(f"unknown variables {', '.join(unknown)}; valid: {', '.join(sorted(known))}")
        return values

    @model_validator(mode="after")
    def _default_database(self) -> "Settings":
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.data_dir / 'medlink.sqlite'}")
        return self

    @model_validator(mode="after")
    def _queue_holds_a_request(self) -> "Settings":
        largest = max(self.max_mentions, self.max_bulk_mentions, self.max_together)
        if self.max_queue_mentions < largest:
            raise ValueError(f"max_queue_mentions must be at least {largest}, else the largest request never fits")
        return self

    @field_validator("tracing")
    @classmethod
    def _tracing_is_installed(cls, tracing: bool) -> bool:
        if tracing and find_spec("opentelemetry.exporter") is None:
            raise ValueError(
                "the tracing extra is not installed; run `pip install opentelemetry-exporter-otlp-proto-http`"
            )
        return tracing

    def environment(self) -> dict[str, str]:
        """Return the variables from which another process gets the same settings."""
        set_ = {name: getattr(self, name) for name in type(self).model_fields}
        return {f"{_PREFIX}{name}".upper(): str(value) for name, value in set_.items() if value is not None}

    @property
    def builds_dir(self) -> Path:
        """Directory that holds the index builds and nothing else."""
        return self.data_dir / "builds"

    @property
    def encoder(self) -> Path:
        """Directory of the encoder that an index build takes in."""
        return self.encoder_dir or self.artefacts_dir / "encoder"

    @property
    def models(self) -> Path:
        """Directory of the models that an index build takes in."""
        return self.models_dir or self.artefacts_dir / "models"

    @property
    def packs_dir(self) -> Path:
        """Directory of the knowledge-base packs in the repository."""
        return self.artefacts_dir / "kb"
