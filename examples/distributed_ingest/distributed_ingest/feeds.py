"""A job's feed, made from what its document holds and nothing else; so a node may begin with any job of a store.

The document has the definition, which is the same for all nodes, and the *settings* of the node that came first. A node
that is given a command uses those of its command.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from distributed_ingest.feed import Feed, Scene
from distributed_ingest.job import Definition, Settings
from distributed_ingest.options import address_of, bytes_of, chosen, seconds_of
from sluice_cli.errors import RefusedError

Maker = Callable[[Scene], Feed]


def maker(definition: Definition, settings: Settings, urls: Sequence[str] = ()) -> Maker:
    """Return what makes the feed. `urls`: those of an HTTP job, with what is hidden in its document.

    What is heavy is imported for its kind alone. Raises UsageError for settings that cannot be; RefusedError if the
    document lacks something.
    """
    try:
        return _MAKERS[definition.kind](definition, settings, urls)
    except KeyError as error:
        raise RefusedError(f"the job's document has no {error}", "give this node the whole command") from error


def _folder(definition: Definition, settings: Settings, _urls: Sequence[str]) -> Maker:
    from distributed_ingest.folder import Folder

    root, pattern, ahead = Path(definition.origins[0]), definition.options["pattern"], int(settings["ahead"])
    window_bytes = bytes_of(settings["window"])
    scan_s, settle_s = seconds_of(settings["scanEvery"]), seconds_of(settings["settle"])
    return lambda scene: Folder(
        scene, root, pattern, window_bytes=window_bytes, ahead=ahead, scan_s=scan_s, settle_s=settle_s
    )


def _s3(definition: Definition, settings: Settings, _urls: Sequence[str]) -> Maker:
    from distributed_ingest.s3 import S3, bucket_of

    url, endpoint = definition.origins[0], definition.options.get("endpoint", "")
    bucket_of(url)
    objects, ahead, window_bytes = int(settings["objects"]), int(settings["ahead"]), bytes_of(settings["window"])
    scan_s, settle_s = seconds_of(settings["scanEvery"]), seconds_of(settings["settle"])
    return lambda scene: S3(
        scene, url, endpoint,
        objects=objects, window_bytes=window_bytes, ahead=ahead, scan_s=scan_s, settle_s=settle_s,
    )  # fmt: skip


def _kafka(definition: Definition, settings: Settings, _urls: Sequence[str]) -> Maker:
    from distributed_ingest.kafka import Kafka

    topic, bootstrap = definition.origins[0], settings["kafka"]
    latest = chosen("--from", settings["from"], ("start", "end")) == "end"
    return lambda scene: Kafka(scene, bootstrap, topic, latest=latest)


def _http(definition: Definition, settings: Settings, urls: Sequence[str]) -> Maker:
    from distributed_ingest.http import Http

    addresses, every_s = _known(definition.origins, urls), seconds_of(settings["every"])
    field, start = definition.options.get("cursor", ""), definition.options.get("cursorStart", "")
    return lambda scene: Http(scene, addresses, every_s=every_s, cursor_field=field, cursor_start=start)


def _receiver(definition: Definition, _settings: Settings, _urls: Sequence[str]) -> Maker:
    from distributed_ingest.receiver import Receiver

    match definition.kind:
        case "http-listener":
            from distributed_ingest.http_listener import receive
        case "syslog":
            from distributed_ingest.syslog import receive
        case "udp":
            from distributed_ingest.udp import receive
        case _:
            from distributed_ingest.tcp import receive
    host, port = address_of(definition.origins[0])
    return lambda scene: Receiver(scene, host, port, receive)


def _rabbitmq(definition: Definition, _settings: Settings, urls: Sequence[str]) -> Maker:
    from distributed_ingest.rabbitmq import RabbitMq

    (url,), queue = _known(definition.origins[:1], urls), definition.origins[1]
    return lambda scene: RabbitMq(scene, url, queue)


def _known(names: Sequence[str], urls: Sequence[str]) -> Sequence[str]:
    """Return the URLs; without those of a command the names, if nothing of them is hidden. Raises RefusedError."""
    if not urls and any("***" in name for name in names):
        raise RefusedError("URLs of the job hold a secret, which no store has", "give this node the whole command")
    return urls or names


_MAKERS: Mapping[str, Callable[[Definition, Settings, Sequence[str]], Maker]] = {
    "folder": _folder,
    "s3": _s3,
    "kafka": _kafka,
    "http": _http,
    "http-listener": _receiver,
    "rabbitmq": _rabbitmq,
    "syslog": _receiver,
    "tcp": _receiver,
    "udp": _receiver,
}
