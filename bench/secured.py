"""Calls on a system as it is: an open one, or one with TLS and passwords.

To a secured system everything here is its user `admin`, by the same variables that the command line and services take:
so what a measurement starts as processes of its own finds them, too.
"""

import os
import time
from functools import partial

import grpc

import sluice_client
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.pravega.tokens import OwnTokens
from sluice.security.folder import File
from sluice.settings import ServiceSettings
from sluice_local.settings import LocalSettings

_USER = "admin"


def become_admin(settings: LocalSettings) -> None:
    """From now on connect as the system with these settings wants it. Its folder need not be there yet."""
    if not settings.secure:
        return
    folder = settings.security_dir
    os.environ |= {
        "SLUICE_USER": _USER,
        "SLUICE_PASSWORD_FILE": str(folder / f"{_USER}.password"),
        "SLUICE_CA": str(folder / File.AUTHORITY),
        "SLUICE_KAFKA_CONF": str(folder / File.KAFKA_CLIENT),
        "SLUICE_STORE_TLS": "true",
        "SLUICE_STORE_TLS_AUTHORITIES": str(folder / File.AUTHORITY),
        "SLUICE_ZOOKEEPER_TLS": "true",
        "SLUICE_ZOOKEEPER_TLS_AUTHORITIES": str(folder / File.AUTHORITY),
        "SLUICE_TOKEN_KEY_FILE": str(folder / File.TOKEN_KEY),
    }


def channel(address: str) -> grpc.Channel:
    """A new channel to a controller at host:port."""
    access = sluice_client.Access.of_environment()
    return grpc.secure_channel(address, access.to_controller()) if access.ca else grpc.insecure_channel(address)


def stub(on: grpc.Channel) -> ControllerServiceStub:
    """All RPCs, each with the password.

    It is given to each call as metadata: a plugin, which gRPC asks on a thread of its own, costs the caller more.
    """
    rpcs = ControllerServiceStub(on)
    if metadata := sluice_client.Access.of_environment().metadata:
        for name, rpc in list(vars(rpcs).items()):
            setattr(rpcs, name, partial(rpc, metadata=metadata))
    return rpcs


def tokens() -> OwnTokens:
    """Those that segment stores want: signed here, as a service does."""
    return OwnTokens(ServiceSettings().token_signer(lambda: time.time_ns() // 1_000_000))
