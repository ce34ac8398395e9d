"""SQLAlchemy: create, reflect, insert, select, update and delete through the ORM."""

import datetime
import decimal
import sys
from typing import List, Optional

from sqlalchemy import ForeignKey, LargeBinary, MetaData, Numeric, String, create_engine, func, inspect, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

engine = create_engine(f"postgresql+psycopg://bezant@127.0.0.1:{sys.argv[1]}/bezant")


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(30), unique=True)
    active: Mapped[bool] = mapped_column(default=True)
    created: Mapped[datetime.datetime] = mapped_column(server_default=func.now())
    photo: Mapped[Optional[bytes]] = mapped_column(LargeBinary)
    money: Mapped[Optional[decimal.Decimal]] = mapped_column(Numeric(10, 2))
    addresses: Mapped[List["Address"]] = relationship(back_populates="user")


class Address(Base):
    __tablename__ = "addresses"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    user: Mapped[User] = relationship(back_populates="addresses")


Base.metadata.create_all(engine)
inspector = inspect(engine)
assert {"users", "addresses"} <= set(inspector.get_table_names())
columns = {column["name"]: column for column in inspector.get_columns("users")}
assert list(columns) == ["id", "name", "active", "created", "photo", "money"], columns
assert columns["name"]["type"].length == 30 and not columns["name"]["nullable"]
assert columns["id"]["autoincrement"] and columns["photo"]["nullable"]
assert inspector.get_pk_constraint("users")["constrained_columns"] == ["id"]
assert inspector.get_unique_constraints("users")[0]["column_names"] == ["name"]
assert [index["column_names"] for index in inspector.get_indexes("addresses")] == [["email"]]
(key,) = inspector.get_foreign_keys("addresses")
assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["user_id"], "users", ["id"])
metadata = MetaData()
metadata.reflect(engine)
assert {"users", "addresses"} <= set(metadata.tables)

with Session(engine) as session:
    emails = [Address(email="a@example.org"), Address(email="b@example.org")]
    session.add(User(name="ann", photo=b"\0\xff", money=decimal.Decimal("12.50"), addresses=emails))
    session.add_all([User(name=f"user {n}") for n in range(5)])
    session.commit()
with Session(engine) as session:
    ann = session.scalars(select(User).where(User.name == "ann")).one()
    assert (ann.active, ann.photo, ann.money) == (True, b"\0\xff", decimal.Decimal("12.5"))
    assert isinstance(ann.created, datetime.datetime)
    assert [address.email for address in ann.addresses] == ["a@example.org", "b@example.org"]
    ann.active = False
    session.delete(session.scalars(select(User).where(User.name == "user 3")).one())
    with session.begin_nested() as nested:
        session.add(User(name="never"))
        session.flush()
        nested.rollback()
    session.commit()
    assert session.scalar(select(func.count(User.id)).where(User.active)) == 4
    assert session.scalar(select(func.count()).select_from(User)) == 5
with Session(engine) as session:
    session.add(User(name="ann"))
    try:
        session.commit()
        raise AssertionError("two users with one name")
    except IntegrityError:
        pass
print("ok")
