"""Where a `sluice dev` is found: what it prints, and what programs that start it read."""

from collections.abc import Mapping

import msgspec


class Addresses(msgspec.Struct, frozen=True, omit_defaults=True):
    """`rest` is a URL, the others are `host:port`.

    Of a secured one `authority` is a file in PEM with what its certificates are of, and `passwords` has the file with
    the password of each user; they go with the process.
    """

    controller: str
    rest: str
    segment_store: str
    authority: str = ""
    passwords: Mapping[str, str] = {}
