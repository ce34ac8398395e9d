"""The tests are SQLAlchemy's."""

from sqlalchemy.testing.suite import *  # noqa: F403
