"""Why a call has no answer.

    Error
    ├── InvalidArgument      wrong argument; nothing was sent (also a ValueError)
    ├── OpenError            the client cannot be opened
    ├── Refused              it was not executed and never will be
    │   ├── NotSent          no connection, or too much under way, until the time was over (also a TimeoutError)
    │   ├── NotAdmitted      the cluster does not let this client join
    │   ├── NotReadOnly      it was asked as a query and writes
    │   ├── ServiceRefused   no room, too large, not allowed
    │   └── SqlError         an error of SQL
    ├── Unanswered           a read had no answer in time; nothing has changed (also a TimeoutError)
    ├── OutcomeUnknown       it may have been executed
    │   ├── DeadlinePassed   or may be yet (also a TimeoutError)
    │   ├── TooLate          it will not be from now on
    │   ├── ClientClosed     the client was closed
    │   └── InternalError    a mistake in the library
    └── ForeignAnswer        the replicas run another service, or another version
"""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """A call has no answer."""


class InvalidArgument(Error, ValueError):
    """An argument is wrong. Nothing was sent."""


class OpenError(Error):
    """The client cannot be opened: a file or a key is wrong, or the system refuses something."""


class Refused(Error):
    """The operation was not executed and never will be."""


class NotSent(Refused, TimeoutError):
    """It was not sent: there was no connection, or too much was under way, until the time was over."""


class NotAdmitted(Refused):
    """It was not sent: the cluster does not let this client join."""


class NotReadOnly(Refused):
    """It was asked as a query, and writes."""


class ServiceRefused(Refused):
    """The service has no room, or the answer would be too large, or the client's role does not allow it."""


class SqlError(Refused):
    """An error of SQL. Nothing was changed, by none of the statements."""

    def __init__(self, message: str, sqlstate: str, statement: int) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        """Five characters, as PostgreSQL has them: "23505" is a key that exists already."""
        self.statement = statement
        """Which statement failed, from 0 on."""


class Unanswered(Error, TimeoutError):
    """Not enough equal answers in time to something that only reads. Nothing has changed; ask again."""


class OutcomeUnknown(Error):
    """The operation may have been executed. Look at what it would have changed before it is sent again."""


class DeadlinePassed(OutcomeUnknown, TimeoutError):
    """Not enough equal answers in time: it may have been executed, or may be yet."""


class TooLate(OutcomeUnknown):
    """It will not be executed from now on, but may have been before: what is read now stays so."""


class ClientClosed(OutcomeUnknown):
    """The client is closed. What was under way may have been executed; a new call was not sent."""


class InternalError(OutcomeUnknown):
    """A mistake in the library."""


class ForeignAnswer(Error):
    """The replicas agree on an answer that is none of this service's: they run another one, or another version."""


BY_CODE: Dict[int, Type[Error]] = {
    1: InvalidArgument,
    2: OpenError,
    3: NotSent,
    4: NotAdmitted,
    5: Refused,
    6: NotReadOnly,
    7: Unanswered,
    8: DeadlinePassed,
    9: TooLate,
    10: ClientClosed,
    12: ServiceRefused,
    13: ForeignAnswer,
    14: InternalError,
}
"""By the numbers of `enum bezant_code` in `bezant.h`; 0 is no error, and 11 is `SqlError`."""
