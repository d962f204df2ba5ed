"""The settings of all programs: environment variables with the prefix ALO_, and options of the same names.

An option wins over its variable: `ALO_HEARTBEAT_S=0.5` and `--heartbeat-s 0.5` say the same. After both come the
variables of Pravega's own samples.
"""

import os
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from redis.asyncio.connection import parse_url

from sluice_client import ScaleType, ScalingPolicy

_MILLISECONDS = "e-3"


class _Pravega(NamedTuple):
    """The variable of Pravega's samples for a setting; `unit` is the power of ten that follows its number."""

    variable: str
    unit: str = ""


def _redis_url(url: str) -> str:
    try:
        parse_url(url)
    except ValueError:
        # What it says may be a part of the password.
        raise ValueError("it must be redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]") from None
    return url


RedisUrl = Annotated[str, AfterValidator(_redis_url)]
"""A URL that the client of Redis takes."""


class Settings(BaseSettings):
    """What every program needs."""

    model_config = SettingsConfigDict(
        env_prefix="ALO_",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
        use_attribute_docstrings=True,
    )

    controller: Annotated[str, _Pravega("PRAVEGA_CONTROLLER"), _Pravega("PRAVEGA_CONTROLLER_URI")] = "127.0.0.1:9090"
    """Address of the controller."""
    scope: Annotated[str, _Pravega("PRAVEGA_SCOPE")] = "examples"
    """The scope of all streams."""
    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(str.lower)] = "info"
    """What is logged, on standard error."""
    patience_s: float = Field(default=60.0, gt=0)
    """How long an outage may last before a program gives up, in seconds."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Part of pydantic-settings: from where values come, the first one that has it first."""
        found = {
            name: value + known.unit
            for name, field in settings_cls.model_fields.items()
            for known in field.metadata
            if isinstance(known, _Pravega) and (value := os.environ.get(known.variable))
        }
        pravega = InitSettingsSource(settings_cls, found)
        return init_settings, env_settings, dotenv_settings, file_secret_settings, pravega


class StreamSettings(Settings):
    """The streams that are made if they are not there."""

    segments: Annotated[int, _Pravega("PRAVEGA_MIN_NUM_SEGMENTS")] = Field(default=8, gt=0)
    """Their segments; with a target rate the fewest."""
    target_rate: Annotated[int, _Pravega("PRAVEGA_TARGET_RATE_EVENTS_PER_SEC")] = Field(default=0, ge=0)
    """Events a second and segment, by which they scale themselves; 0: they do not."""
    scale_factor: Annotated[int, _Pravega("PRAVEGA_SCALE_FACTOR")] = Field(default=2, gt=1)
    """Into how many a segment is split then."""

    @property
    def scaling(self) -> ScalingPolicy:
        if self.target_rate:
            return ScalingPolicy(ScaleType.EVENTS, self.target_rate, self.scale_factor, self.segments)
        return ScalingPolicy(min_segments=self.segments)


class GroupSettings(Settings):
    """The workers of one group find each other by the stream `<group>-members`; they share a reader group."""

    group: Annotated[str, _Pravega("PRAVEGA_READER_GROUP")] = "workers"
    """The name of the group of workers."""
    heartbeat_s: Annotated[float, _Pravega("HEARTBEAT_INTERVAL_MS", _MILLISECONDS)] = Field(default=1.0, gt=0)
    """How often a worker shows that it is there, in seconds."""
    missed: int = Field(default=10, gt=0)
    """After how many missed heartbeats it is gone."""


class CheckpointSettings(GroupSettings):
    """A checkpoint of a group."""

    deadline_s: float = Field(default=60.0, gt=0)
    """After how many seconds it is given up."""


class AppSettings(GroupSettings, StreamSettings):
    """One worker."""

    input: Annotated[str, _Pravega("PRAVEGA_STREAM_1")] = "stream1"
    """The stream that is read."""
    output: Annotated[str, _Pravega("PRAVEGA_STREAM_2")] = "stream2"
    """The stream that is written, unless the output goes to Redis."""
    output_to: Literal["stream", "redis"] = "stream"
    """Where the results go: a stream (at least once), or Redis, keyed (each effect exactly once)."""
    redis_url: RedisUrl = "redis://127.0.0.1:6379/0"
    """The Redis of the keyed output."""
    function: str = "at_least_once.functions:upper_case"
    """The stateless function that is applied, as module:name; from the bytes of an event to those of another."""
    name: Annotated[str, _Pravega("INSTANCE_ID")] = "worker"
    """How the worker is called; a part that makes it unique is added."""
    checkpoint_s: Annotated[float, _Pravega("CHECKPOINT_PERIOD_MS", _MILLISECONDS)] = Field(default=1.0, ge=0)
    """How often the group, if it is not there yet, makes a checkpoint, in seconds; 0: only by hand."""
    refresh_s: float = Field(default=0.5, gt=0)
    """How often each worker of that group looks what the others do, in seconds."""


class GeneratorSettings(StreamSettings):
    """The generator of events."""

    output: Annotated[str, _Pravega("PRAVEGA_STREAM_1")] = "stream1"
    """The stream that is written."""
    rate: float = Field(default=1.0, gt=0)
    """Events a second."""
    count: int = Field(default=0, ge=0)
    """How many events; 0: without end."""
    first: int = Field(default=0, ge=0)
    """The first sequence number."""
    source: str = ""
    """The name that the events carry; a new one each time, if it is not given."""
    keys: int = Field(default=16, gt=0)
    """How many routing keys the events are spread over."""


class SinkSettings(StreamSettings):
    """The sink that prints and checks."""

    input: Annotated[str, _Pravega("PRAVEGA_STREAM_2")] = "stream2"
    """The stream that is read, from its beginning."""
    expect: int = Field(default=0, ge=0)
    """How many different events there must be; 0: print until it is stopped."""
    deadline_s: float = Field(default=300.0, gt=0)
    """How long to wait for them, in seconds."""
    quiet_s: float = Field(default=1.0, gt=0)
    """How long nothing more may come before it counts, in seconds."""
    quiet: bool = False
    """Print the summary only."""


class IdempotentSinkSettings(Settings):
    """The check of the keyed output."""

    output: Annotated[str, _Pravega("PRAVEGA_STREAM_2")] = "stream2"
    """The name of the output."""
    redis_url: RedisUrl = "redis://127.0.0.1:6379/0"
    """The Redis of the keyed output."""
    expect: int = Field(default=0, ge=0)
    """How many different events there must be."""
    deadline_s: float = Field(default=300.0, gt=0)
    """How long to wait for them, in seconds."""


class StarterSettings(AppSettings):
    """Several workers on this machine."""

    workers: int = Field(default=4, gt=0)
    """How many."""
