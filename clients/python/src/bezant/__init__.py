"""Client of Bezant, a replicated service that stays right while some of its replicas lie.

    from bezant import Client

    with Client("net/cluster.toml") as client:
        client.set("greeting", "hello")
        client.sql("insert into visits(name) values (?1)", ["Ada"])
        for name, count in client.sql("select name, count(*) from visits group by name"):
            print(name, count)

Every answer is what 2f + 1 of the replicas say alike. A call that has no answer raises one of the exceptions of
`bezant.errors`; the one to think about is `OutcomeUnknown`.
"""

from .client import Client, Rows, Value
from .errors import (
    ClientClosed,
    DeadlinePassed,
    Error,
    ForeignAnswer,
    InternalError,
    InvalidArgument,
    NotAdmitted,
    NotReadOnly,
    NotSent,
    OpenError,
    OutcomeUnknown,
    Refused,
    ServiceRefused,
    SqlError,
    TooLate,
    Unanswered,
)

__all__ = [
    "Client",
    "ClientClosed",
    "DeadlinePassed",
    "Error",
    "ForeignAnswer",
    "InternalError",
    "InvalidArgument",
    "NotAdmitted",
    "NotReadOnly",
    "NotSent",
    "OpenError",
    "OutcomeUnknown",
    "Refused",
    "Rows",
    "ServiceRefused",
    "SqlError",
    "TooLate",
    "Unanswered",
    "Value",
]
