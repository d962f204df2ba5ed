"""Until when certificates count, in words for operators. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

RENEWAL_PART = 10
MAX_RENEWAL = timedelta(days=14)


@dataclass(frozen=True)
class Validity:
    """Between which times, in UTC, the certificate in a file counts."""

    file: str
    begins: datetime
    ends: datetime

    @property
    def renewal(self) -> timedelta:
        """How long before its end it should be replaced: a tenth of its life, for some live hours, at most 14 days."""
        return min((self.ends - self.begins) / RENEWAL_PART, MAX_RENEWAL)

    def left(self, now: datetime | None = None) -> timedelta:
        """How long it still counts; negative once it is over."""
        return self.ends - (now or datetime.now(UTC))

    def refusal(self, now: datetime | None = None) -> str | None:
        """Why it does not count; None while it does."""
        if self.left(now) <= timedelta():
            return f"{self.file} expired on {_moment(self.ends)}"
        if (now or datetime.now(UTC)) < self.begins:
            return f"{self.file} is not valid before {_moment(self.begins)}"
        return None

    def problem(self, now: datetime | None = None) -> str | None:
        """Why it has to be replaced; None while there is time."""
        if self.left(now) > self.renewal:
            return None
        return self.refusal(now) or f"{self.file} expires on {_moment(self.ends)}: replace it"


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
