"""Java's modified UTF-8, which every string on the wire and in the container map is written in.

It differs from UTF-8 only for NUL and for code points above U+FFFF (segment-store-wire-protocol 1.2), so the common
case is tried first. Pure functions.
"""

MAX_TEXT_BYTES = 0xFFFF


def encode_text(text: str) -> bytes:
    """The bytes of `text` without their length. Raises ValueError above 65,535 bytes."""
    if text.isascii() and "\0" not in text:
        raw = text.encode("ascii")
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        pairs = zip(units[::2], units[1::2], strict=True)
        utf8 = "".join(chr(high << 8 | low) for high, low in pairs).encode("utf-8", "surrogatepass")
        raw = utf8.replace(b"\0", b"\xc0\x80")
    if len(raw) > MAX_TEXT_BYTES:
        raise ValueError(f"a string of {len(raw)} bytes is longer than {MAX_TEXT_BYTES}")
    return raw


def decode_text(raw: bytes) -> str:
    """The text in `raw`; half a surrogate pair becomes U+FFFD. Raises ValueError if it is not modified UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        units = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
        return units.decode("utf-16-be", "replace")
