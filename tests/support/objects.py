"""An S3 server of the tests' own, in a thread of this process."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

ACCESS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
"""The variables by which clients find what they may do; the server believes anyone."""


@dataclass(frozen=True)
class Objects:
    """A bucket; `endpoint` is the server's URL."""

    endpoint: str
    bucket: str
    client: Any

    def put(self, objects: Mapping[str, bytes]) -> None:
        for key, data in objects.items():
            self.client.put_object(Bucket=self.bucket, Key=key, Body=data)


@contextmanager
def private_objects(bucket: str) -> Iterator[Objects]:
    """An empty bucket, gone at the end of the block."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            aws_access_key_id=ACCESS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ACCESS["AWS_SECRET_ACCESS_KEY"],
            region_name=ACCESS["AWS_DEFAULT_REGION"],
        )
        client.create_bucket(Bucket=bucket)
        yield Objects(f"http://{host}:{port}", bucket, client)
    finally:
        server.stop()
