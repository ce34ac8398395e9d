"""Alembic: migrations by hand and by comparison with models, up and down.

Each line of the output is `pass NAME` or `fail NAME: why`.
"""

import sys

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.operations.ops import ModifyTableOps

ENGINE = sa.create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{sys.argv[1]}/postgres")
NAMES = {"ix": "ix_%(table_name)s_%(column_0_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s",
         "fk": "fk_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"}


def models(second):
    """What the tables should be, in the first version and in the second."""
    meta = sa.MetaData(naming_convention=NAMES)
    sa.Table("al_author", meta, sa.Column("id", sa.Integer, primary_key=True),
             sa.Column("name", sa.String(120 if second else 60), nullable=False),
             *([sa.Column("email", sa.String(80))] if second else []))
    sa.Table("al_book", meta, sa.Column("id", sa.BigInteger, primary_key=True),
             sa.Column("author_id", sa.Integer, sa.ForeignKey("al_author.id"), nullable=False, index=second),
             sa.Column("title", sa.Text, nullable=not second),
             sa.Column("price", sa.Numeric(10, 2), server_default="0"),
             sa.Column("made", sa.DateTime(timezone=True), server_default=sa.func.now()))
    return meta


def context(connection):
    return MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": False})


def migrate(meta):
    """Makes the tables what they should be, by what the comparison says."""
    with ENGINE.begin() as connection:
        here = context(connection)
        operations = Operations(here)
        todo = list(produce_migrations(here, meta).upgrade_ops.ops)
        for step in todo:
            for operation in step.ops if isinstance(step, ModifyTableOps) else [step]:
                operations.invoke(operation)
    return len(todo)


def differences(meta):
    with ENGINE.connect() as connection:
        return compare_metadata(context(connection), meta)


def act(work):
    with ENGINE.begin() as connection:
        work(Operations(context(connection)))


def autogenerate_creates():
    assert migrate(models(False)) >= 2


def what_was_created_is_no_difference():
    assert differences(models(False)) == []


def version_table():
    with ENGINE.begin() as connection:
        here = context(connection)
        here._ensure_version_table()
        connection.execute(here._version.insert().values(version_num="0001"))
    with ENGINE.connect() as connection:
        assert context(connection).get_current_revision() == "0001"


def autogenerate_alters():
    with ENGINE.begin() as connection:
        connection.execute(sa.text("insert into al_author(id, name) values (1, 'x')"))
        connection.execute(sa.text("insert into al_book(id, author_id, title) values (1, 1, 'y')"))
    assert migrate(models(True)) >= 1


def what_was_altered_is_no_difference():
    assert differences(models(True)) == [], differences(models(True))


def rows_are_still_there():
    with ENGINE.connect() as connection:
        assert connection.execute(sa.text("select title, price from al_book")).one()[0] == "y"


def autogenerate_goes_back():
    migrate(models(False))
    assert differences(models(False)) == [], differences(models(False))


def add_and_drop_a_column():
    act(lambda op: op.add_column("al_book", sa.Column("extra", sa.JSON)))
    act(lambda op: op.alter_column("al_book", "extra", new_column_name="more"))
    act(lambda op: op.drop_column("al_book", "more"))


def constraints_by_name():
    act(lambda op: op.create_unique_constraint("al_once", "al_book", ["title"]))
    act(lambda op: op.drop_constraint("al_once", "al_book"))
    act(lambda op: op.create_check_constraint("al_paid", "al_book", sa.text("price >= 0")))
    act(lambda op: op.drop_constraint("al_paid", "al_book"))


def foreign_keys_by_name():
    act(lambda op: op.drop_constraint("fk_al_book_author_id", "al_book", type_="foreignkey"))
    act(lambda op: op.create_foreign_key("al_fk", "al_book", "al_author", ["author_id"], ["id"], ondelete="CASCADE"))


def indexes():
    act(lambda op: op.create_index("al_partial", "al_book", ["title"], postgresql_where=sa.text("price > 1")))
    act(lambda op: op.drop_index("al_partial"))


def bulk_insert():
    table = sa.table("al_author", sa.column("id"), sa.column("name"))
    rows = [{"id": number, "name": str(number)} for number in range(100, 200)]
    act(lambda op: op.bulk_insert(table, rows))


def batch_alter_table():
    def work(op):
        with op.batch_alter_table("al_book") as batch:
            batch.alter_column("title", type_=sa.String(50), nullable=False)
            batch.add_column(sa.Column("pages", sa.Integer))
    act(work)


def rename_and_drop():
    act(lambda op: op.rename_table("al_book", "al_volume"))
    act(lambda op: op.drop_table("al_volume"))
    act(lambda op: op.drop_table("al_author"))


CASES = [autogenerate_creates, what_was_created_is_no_difference, version_table, autogenerate_alters,
         what_was_altered_is_no_difference, rows_are_still_there, autogenerate_goes_back, add_and_drop_a_column,
         constraints_by_name, foreign_keys_by_name, indexes, bulk_insert, batch_alter_table, rename_and_drop]

for case in CASES:
    try:
        case()
        print(f"pass {case.__name__}", flush=True)
    except Exception as error:
        print(f"fail {case.__name__}: {type(error).__name__} {error}".replace("\n", " ")[:400], flush=True)
