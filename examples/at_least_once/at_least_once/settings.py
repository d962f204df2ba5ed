"""The settings of all programs: environment variables with the prefix ALO_, and options of the same names.

An option wins over its variable: `ALO_HEARTBEAT_S=0.5` and `--heartbeat-s 0.5` say the same.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from redis.asyncio.connection import parse_url


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

    controller: str = "127.0.0.1:9090"
    """Address of the controller."""
    scope: str = "examples"
    """The scope of all streams."""
    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(str.lower)] = "info"
    """What is logged, on standard error."""
    patience_s: float = Field(default=60.0, gt=0)
    """How long an outage may last before a program gives up, in seconds."""


class GroupSettings(Settings):
    """The workers of one group find each other by the stream `<group>-members`; they share a reader group."""

    group: str = "workers"
    """The name of the group of workers."""
    heartbeat_s: float = Field(default=1.0, gt=0)
    """How often a worker shows that it is there, in seconds."""
    missed: int = Field(default=10, gt=0)
    """After how many missed heartbeats it is gone."""


class CheckpointSettings(GroupSettings):
    """A checkpoint of a group."""

    deadline_s: float = Field(default=60.0, gt=0)
    """After how many seconds it is given up."""


class AppSettings(GroupSettings):
    """One worker."""

    input: str = "stream1"
    """The stream that is read."""
    output: str = "stream2"
    """The stream that is written, unless the output goes to Redis."""
    segments: int = Field(default=8, gt=0)
    """Segments of the streams, for those that are not there yet."""
    output_to: Literal["stream", "redis"] = "stream"
    """Where the results go: a stream (at least once), or Redis, keyed (each effect exactly once)."""
    redis_url: RedisUrl = "redis://127.0.0.1:6379/0"
    """The Redis of the keyed output."""
    function: str = "at_least_once.functions:upper_case"
    """The stateless function that is applied, as module:name; from the bytes of an event to those of another."""
    name: str = "worker"
    """How the worker is called; a part that makes it unique is added."""
    checkpoint_s: float = Field(default=1.0, ge=0)
    """How often the group, if it is not there yet, makes a checkpoint, in seconds; 0: only when told to."""
    refresh_s: float = Field(default=0.5, gt=0)
    """How often each worker of that group looks what the others do, in seconds."""


class GeneratorSettings(Settings):
    """The generator of events."""

    output: str = "stream1"
    """The stream that is written."""
    segments: int = Field(default=8, gt=0)
    """Its segments, if it is not there yet."""
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


class SinkSettings(Settings):
    """The sink that prints and checks."""

    input: str = "stream2"
    """The stream that is read, from its beginning."""
    segments: int = Field(default=8, gt=0)
    """Its segments, if it is not there yet."""
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

    output: str = "stream2"
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
