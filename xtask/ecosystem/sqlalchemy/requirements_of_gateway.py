"""What the suite asks for. Beside the suite's own defaults: there is one schema, and there are no sequences and no
temporary tables."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


class Requirements(SuiteRequirements):
    @property
    def schemas(self):
        return exclusions.closed()

    @property
    def sequences(self):
        return exclusions.closed()

    @property
    def temporary_tables(self):
        return exclusions.closed()

    @property
    def temp_table_reflection(self):
        return exclusions.closed()
