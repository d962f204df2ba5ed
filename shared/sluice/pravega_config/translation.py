"""What becomes of the settings of Pravega's controller: values of ours, or the reason why there is none.

A service takes the values (`sluice.settings`), `sluice config explain` shows the rows. Reads the files that a rule has
to compare, and nothing else.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sluice.pravega_config import table
from sluice.pravega_config.properties import PREFIX, PravegaConfigError, effective
from sluice.pravega_config.table import RULES, Fixed, Kept, Unneeded
from sluice.security.pem import NoCertificatesError
from sluice.security.stores import certificates_in

_STORE_TLS_ON, _STORE_TLS_OFF = ("true", "yes", "y"), ("false", "no", "n")
_METRICS = "metrics."


class Fate(StrEnum):
    """What becomes of a property."""

    KEPT = "kept"
    OVERRIDDEN = "overridden"
    UNUSED = "not used"
    UNNEEDED = "not needed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One property; `value` is ours if it is kept, and no secret. Only gateways refuse what is `of_gateway`."""

    property: str
    value: str
    fate: Fate
    setting: str = ""
    what: str = ""
    of_gateway: bool = False


class Translation:
    """All properties that are given. `ours` are the names of settings that are given by themselves, and count more."""

    def __init__(self, properties: Mapping[str, str], ours: Collection[str]) -> None:
        self._given = {name.removeprefix(PREFIX): value for name, value in properties.items()}
        self._ours = ours
        self.values: dict[str, tuple[str, Kept]] = {}
        """Of each setting the value, and the rule that it is from."""
        self.rows = [*self._rows(), *self._refusals()]

    @classmethod
    def of(cls, file: str, options: str, environment: Mapping[str, str], ours: Collection[str]) -> "Translation":
        """See `properties.effective`. Raises PravegaConfigError."""
        return cls(effective(file, options, environment), ours)

    def settings(self, fields: Collection[str], is_gateway: bool) -> dict[str, str]:
        """The values for a service with these settings. Raises PravegaConfigError."""
        refused = [row for row in self.rows if row.fate is Fate.REFUSED and (is_gateway or not row.of_gateway)]
        if refused:
            raise PravegaConfigError(*(f"{row.property}={row.value}: {row.what}" for row in refused))
        return {
            setting: value
            for setting, (value, rule) in self.values.items()
            if setting in fields and (is_gateway or not rule.of_gateway)
        }

    def _value(self, name: str) -> str:
        """The value of a property, by its old name if that is given; empty if it is not there."""
        old, _ = RULES[name]
        return self._given.get(old) or self._given.get(name, "") if old else self._given.get(name, "")

    def _is_on(self, switch: str) -> bool:
        word = self._value(switch).lower()
        if switch != table.STORE_TLS:
            return word in table.ON
        return word in _STORE_TLS_ON or (word not in _STORE_TLS_OFF and self._is_on(table.TLS))

    def _rows(self) -> Iterator[Row]:
        names = {old: name for name, (old, _) in RULES.items() if old}
        for given, value in sorted(self._given.items()):
            name = names.get(given, given)
            old, rule = RULES.get(name, ("", None))
            if rule is None:
                yield self._foreign(given, value)
            elif given != old and self._given.get(old):
                yield Row(PREFIX + given, _shown(value, rule), Fate.UNUSED, what=f"{PREFIX}{old}, its old name, counts")
            elif value:
                yield self._row(given, name, value, rule)

    def _foreign(self, name: str, value: str) -> Row:
        if name.startswith(_METRICS):
            return Row(PREFIX + name, value, Fate.UNNEEDED, what="metrics are served to Prometheus")
        return Row(PREFIX + name, value, Fate.UNKNOWN, what="Pravega's controller has no such setting")

    def _row(self, given: str, name: str, value: str, rule: Kept | Fixed | Unneeded) -> Row:
        property = PREFIX + given
        match rule:
            case Unneeded():
                return Row(property, value, Fate.UNNEEDED, what=rule.why)
            case Fixed():
                fits = value.lower() in rule.values
                return Row(property, value, Fate.KEPT if fits else Fate.REFUSED, what=rule.why)
        setting = f"SLUICE_{rule.setting.upper()}"
        if rule.setting in self._ours:
            return Row(property, _shown(value, rule), Fate.OVERRIDDEN, setting, "it is given by itself")
        if rule.on and not self._is_on(rule.on):
            return Row(property, _shown(value, rule), Fate.UNUSED, setting, f"{PREFIX}{rule.on} is off")
        try:
            kept = str(self._is_on(name)).lower() if name == table.STORE_TLS else rule.convert(value)
        except ValueError as error:
            return Row(property, value, Fate.REFUSED, setting, str(error))
        self.values[rule.setting] = kept, rule
        return Row(property, _shown(kept, rule), Fate.KEPT, setting, rule.remark)

    def _refusals(self) -> Iterator[Row]:
        """What no property says by itself."""
        if not self._is_on(table.TLS):
            return
        _, store_tls = RULES[table.STORE_TLS]
        if not self._value(table.STORE_TLS) and "store_tls" not in self._ours and isinstance(store_tls, Kept):
            self.values["store_tls"] = "true", store_tls
            yield Row(
                PREFIX + table.TLS, "true", Fate.KEPT, "SLUICE_STORE_TLS", f"{PREFIX}{table.STORE_TLS} is not given"
            )
        if "tls_certificate" in self._ours:
            return
        certificate, key_store = self._value(table.CERTIFICATE), self._value(table.KEY_STORE)
        if not certificate:
            why = f"without {PREFIX}{table.CERTIFICATE} the original would serve without TLS"
            yield Row(PREFIX + table.TLS, "true", Fate.REFUSED, what=why)
        elif key_store and (why := self._differs(certificate, key_store)):
            yield Row(PREFIX + table.KEY_STORE, key_store, Fate.REFUSED, what=why, of_gateway=True)

    def _differs(self, certificate: str, key_store: str) -> str:
        """Why REST cannot show what is in the key store; empty if it is the certificate that gRPC shows."""
        passwords = self._value(table.KEY_STORE_PASSWORD)
        try:
            password = Path(passwords).read_text().strip() if passwords else ""
            of_rest = certificates_in(Path(key_store).read_bytes(), password)[0]
            of_grpc = certificates_in(Path(certificate).read_bytes(), "")[0]
        except (OSError, NoCertificatesError) as error:
            return f"whether it is the certificate of gRPC cannot be seen: {error}"
        if of_rest == of_grpc:
            return ""
        return (
            f"it is another certificate than {certificate}, and REST shows the same as gRPC; "
            "SLUICE_TLS_CERTIFICATE and SLUICE_TLS_KEY say which"
        )


def _shown(value: str, rule: Kept | Fixed | Unneeded) -> str:
    return "(secret)" if isinstance(rule, Kept) and rule.is_secret else value
