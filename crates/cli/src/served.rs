//! The services that this program serves, by the names that `node.toml` has for them.

use bezant_node::Error;
use bezant_node::host::Home;
use bezant_node::net::ServiceBuild;

/// What is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// SQL tables, and keys and values.
    Sql,
    /// Keys and values only.
    Kv,
    /// Requests and replies of chosen sizes, no state.
    Null,
    /// The example of the documentation.
    Counter,
}

impl Served {
    const ALL: [Self; 4] = [Self::Sql, Self::Kv, Self::Null, Self::Counter];

    /// The service that a replica is for.
    pub(crate) fn of(home: &Home) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|served| served.name() == home.node.service);
        let names: Vec<_> = Self::ALL.iter().map(|served| format!("{:?}", served.name())).collect();
        found.ok_or_else(|| home.other_service(&names.join(", ")))
    }

    /// As `node.toml` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Kv => "kv",
            Self::Null => "null",
            Self::Counter => "counter",
        }
    }

    /// What all replicas must run alike.
    pub(crate) fn build(self, home: &Home) -> Result<ServiceBuild, Error> {
        match self {
            Self::Sql => Ok(ServiceBuild::new(&bezant_sql::build())),
            other => home.serving(other.name(), 1),
        }
    }
}
