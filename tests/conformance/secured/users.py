"""The accounts of both controllers, and who of them may do something by rights.

For each resource there is an account that may do everything on it and nothing else, one that may only read it, and one
that may do everything but on it. So a call that asks for another resource, or another permission, is found out.
"""

import base64
from collections.abc import Mapping
from enum import StrEnum

from sluice.security.passwords import PasswordHash, derive

PASSWORD = "a pass:word"
_SALT = b"salt" * 8
_ITERATIONS = 1


class On(StrEnum):
    """What permissions are about; the names are those that the calls have."""

    ROOT = "prn::/"
    SCOPE = "prn::/scope:sec"
    STREAM = "prn::/scope:sec/stream:st"
    STATE = "prn::/scope:sec/stream:_RGrg"
    MARK = "prn::/scope:sec/stream:_MARKst"
    INTERNAL = "prn::/scope:sec/stream:_other"
    GROUP = "prn::/scope:sec/reader-group:rg"
    TABLE = "prn::/scope:sec/key-value-table:kv"
    CLUSTER = "prn::/sluice:cluster"
    WORKFLOWS = "prn::/sluice:workflows"
    DEAD_LETTERS = "prn::/sluice:dead-letters"


READ, UPDATE = 1, 2

EVERYTHING: Mapping[str, int] = {"admin": UPDATE, "reader": READ, "other": 0, "nobody": 0}
"""What accounts may do on all resources alike."""

_ACLS = {
    "admin": "prn::*,READ_UPDATE",
    "reader": "prn::*,READ;",
    "other": "prn::/scope:other*,READ_UPDATE;prn::/scope:sec2*,READ_UPDATE",
    "nobody": "",
    **{f"only-{on.name}": f"{on},READ_UPDATE" for on in On},
    **{f"reads-{on.name}": f"{on},READ;" for on in On},
    **{f"all-but-{on.name}": f"{on},NONE;prn::*,READ_UPDATE" for on in On},
}

USERS = tuple(_ACLS)


def level(user: str, on: On) -> int:
    """What a user may do on a resource: 0, READ or UPDATE."""
    if user in EVERYTHING:
        return EVERYTHING[user]
    kind, _, name = user.rpartition("-")
    is_it = name == on.name
    return {"only": UPDATE * is_it, "reads": READ * is_it, "all-but": UPDATE * (not is_it)}[kind]


def password_file() -> str:
    """The accounts as Pravega reads them."""
    stored = PasswordHash(_ITERATIONS, _SALT, derive(PASSWORD, _ITERATIONS, _SALT)).encoded()
    return "".join(f"{user}:{stored}:{acl}\n" for user, acl in _ACLS.items())


def basic(user: str, password: str = PASSWORD) -> str:
    """What a caller sends."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


NO_ONE_SENT: Mapping[str, str] = {
    "no header": "",
    "one word": "Basic",
    "lower case": basic("admin").replace("Basic", "basic"),
    "unknown method": "Digest x",
}
"""Headers that prove nothing, and claim nothing that a handler looks at."""

WRONG_SENT: Mapping[str, str] = {
    "wrong password": basic("admin", "wrong"),
    "unknown user": basic("unknown"),
    "no user": basic("", ""),
}
"""Headers that a handler refuses."""

BROKEN_SENT: Mapping[str, str] = {"no Base64": "Basic !", "no colon": "Basic null"}
"""Headers that a handler cannot read."""
