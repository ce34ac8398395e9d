"""The tests are SQLAlchemy's."""

from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ComponentReflectionTest as Theirs


class ComponentReflectionTest(Theirs):
    """Comments are accepted and not kept: all but them is compared."""

    def _check_list(self, result, exp, req_keys=None, msg=None):
        if req_keys is not None:
            result = [{key: value for key, value in one.items() if key != "comment"} for one in result]
        super()._check_list(result, exp, req_keys, msg)


del Theirs
