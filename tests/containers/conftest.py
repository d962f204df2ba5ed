"""Fixtures of the contract tests: the engine, the backing containers, and what a service under test has around it.

The tests run only when this folder is named, as `make contract` does: they need a container engine.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from testcontainers.core.network import Network

from containers import images
from containers.backing import KafkaContainer, RedisContainer, ZooKeeperContainer
from containers.neighbours import Neighbours
from containers.service_images import IMAGES, service_images
from containers.store_server import SegmentStoreServer
from containers.surroundings import NETWORK, PARTITIONS, NoEngineError, Surroundings, engine, gateway, is_there
from sluice_local.settings import LocalSettings

_HERE = Path(__file__).resolve().parent
_TEST_S = 240


def _is_requested(config: pytest.Config) -> bool:
    paths = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    return any(path.resolve().is_relative_to(_HERE) for path in paths)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if _is_requested(config) else True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Never left out in silence."""
    if not _is_requested(config):
        terminalreporter.line("contract tests with containers: not part of this run, `make contract` runs them")


@pytest.fixture(scope="package")
def network() -> Iterator[Network]:
    """The network that the engine was started with, or one for this run. Without an engine the run ends here."""
    try:
        engine()
    except NoEngineError as error:
        pytest.exit(f"contract tests: none can run, there is no container engine: {error}", returncode=images.NO_ENGINE)
    network = Network()
    network.name = NETWORK
    if is_there(network):
        yield network
    else:
        with network:
            yield network


@pytest.fixture(scope="package")
def made(runs_folder: Path) -> Path:
    """A folder for what is packed into images."""
    return runs_folder / "images"


@pytest.fixture(scope="package")
def kafka(network: Network, made: Path) -> Iterator[KafkaContainer]:
    with KafkaContainer(images.built(images.kafka_image(LocalSettings()), made), network) as kafka:
        yield kafka


@pytest.fixture(scope="package")
def redis(network: Network, made: Path) -> Iterator[RedisContainer]:
    with RedisContainer(images.built(images.redis_image(LocalSettings()), made), network) as redis:
        yield redis


@pytest.fixture(scope="package")
def zookeeper(network: Network, made: Path) -> Iterator[ZooKeeperContainer]:
    with ZooKeeperContainer(images.built(images.zookeeper_image(LocalSettings()), made), network) as zookeeper:
        yield zookeeper


@pytest.fixture(scope="module")
def store(network: Network) -> Iterator[SegmentStoreServer]:
    """A segment store that containers reach, with nothing in it."""
    with SegmentStoreServer(gateway(network)) as store:
        yield store


@pytest.fixture(scope="module")
def neighbours(kafka: KafkaContainer) -> Iterator[Neighbours]:
    """All other services, on new topics; a service under test is started after this."""
    neighbours = Neighbours(kafka.outside, PARTITIONS)
    yield neighbours
    neighbours.close()


@pytest.fixture(scope="package")
def built(network: Network, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """The images of the services whose tests are part of this run. Without an engine there is no network either."""
    tested = {item.path.stem for item in request.session.items if item.path.is_relative_to(_HERE)}
    return service_images(tuple(name for name in IMAGES if f"test_{name.replace('-', '_')}" in tested))


@pytest.fixture(scope="module")
def surroundings(built: Mapping[str, str], network: Network, kafka: KafkaContainer, runs_folder: Path) -> Surroundings:
    return Surroundings(built, network, kafka.inside, runs_folder / "containers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that takes too long ends by an exception, so that its containers are removed like those of any other.

    What it asks for has limits of its own, and builds images where they are missing.
    """
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_TEST_S, method="signal", func_only=True))
