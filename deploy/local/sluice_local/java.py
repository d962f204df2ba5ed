"""How the Java programs are started. Functions without state."""

import os
from collections.abc import Iterable
from pathlib import Path

# One collector thread and no speculation about a big machine: several Java programs share two cores here.
_COMMON = ("-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")

SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
"""For programs whose start matters more than their speed."""

_LOGBACK = """\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{{HH:mm:ss.SSS}} %-5level %logger{{24}} [%thread] %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
  <logger name="io.pravega" level="INFO"/>
  <!-- Logs once a second, with a stack trace, that ZooKeeper is away; what follows from it is logged elsewhere. -->
  <logger name="org.apache.zookeeper.ClientCnxn" level="ERROR"/>
{quiet}</configuration>
"""


def executable() -> str:
    """Return the java to run: the one of JAVA_HOME if that is set, as Maven does, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def archive(jars_dir: Path, name: str) -> Path:
    """Return where the archive of a program's classes is, once it was made; see `archives`."""
    return jars_dir / "classes" / f"{name}.jsa"


def command(
    jars: Path, main: str, arguments: Iterable[str] = (), options: Iterable[str] = (), archive: Path | None = None
) -> tuple[str, ...]:
    """Return the command that runs a main class on a folder of jars, with an archive of its classes if there is one."""
    shared = (f"-XX:SharedArchiveFile={archive}",) if archive is not None and archive.exists() else ()
    return (executable(), *_COMMON, *shared, *options, "-cp", f"{jars}/*", main, *arguments)


def properties(values: dict[str, str | int | bool]) -> str:
    """Render a properties file."""

    def text(value: str | int | bool) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return "".join(f"{key}={text(value)}\n" for key, value in values.items())


def logback(quiet: Iterable[str] = ()) -> str:
    """Render the log settings of ZooKeeper, BookKeeper and the segment store: the console, which is the log file.

    Loggers that are `quiet` log warnings alone.
    """
    loggers = "".join(f'  <logger name="{name}" level="WARN"/>\n' for name in quiet)
    return _LOGBACK.format(quiet=loggers)
