"""How an address is shown: without what proves who calls. Every message, status and file for people shows it so.

Hidden is the whole user, for the name alone may be a key, and in a query the values of parameters whose names say so.
A secret under a name that says nothing is not recognized. Pure.
"""

import re

HIDDEN = "***"
WORDS = "password|passwd|passphrase|secret|token|credential|jaas|authorization|(?:api|access|private)[-_.]?key"
"""What the name of a secret has in it."""

# Up to the last @ before the path. Or a password has a / in it, so that no port follows the colon: up to the last @.
_USER = r"(?:[^\s/?#\"']*@|[^\s/?#\"'@\[]*:(?!\d*(?:[/?#\s\"']|$))[^\s\"']*@)"
USER_IN_URL = re.compile(rf"(?<=://)({_USER})")
"""Who calls, with the @, in any text that has URLs in it."""
_FIRST = re.compile(rf"^{_USER}")
_IN_QUERY = re.compile(
    rf"([?&](?:[^=&#\s]*(?:{WORDS}|signature)[^=&#\s]*|(?:[^=&#\s]*[-_.])?(?:key|pass|pwd|auth|sig))=)[^&#\s]+",
    re.IGNORECASE,
)


def shown(address: str) -> str:
    """An address, with or without a scheme, as people may see it."""
    hidden = USER_IN_URL.sub(f"{HIDDEN}@", address) if "://" in address else _FIRST.sub(f"{HIDDEN}@", address)
    return _IN_QUERY.sub(rf"\1{HIDDEN}", hidden)
