"""Sets SQLAlchemy's suite up for a server that may be the gateway."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
from sqlalchemy.dialects.postgresql import provision as _  # noqa: E402, F401
from sqlalchemy.testing import provision  # noqa: E402

# It would begin by creating extensions, which no test of the suite needs.
provision.post_configure_engine.fns["postgresql"] = lambda *_: None
