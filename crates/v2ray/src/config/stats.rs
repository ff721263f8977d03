//! `stats`: counters, and where what users have used is kept.

use std::fmt;

use zeroize::Zeroizing;

use super::context::Cx;
use super::scalar::Name;
use super::schema::Kind;
use super::table::{Decode, object};
use crate::json::Value;
use crate::problem::At;

object! {
    /// Counters, and where what users have used is kept. An empty object switches counters on.
    pub struct Stats: "stats" {
        /// Where it is kept what each user has sent and received, over restarts: the path of a SQLite file, which is made, or a
        /// URL of a PostgreSQL database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`, in which the sums of all
        /// nodes stand. `sslmode` and `sslrootcert` mean what they mean to libpq; the authorities are those of the system where
        /// none are named. Absent: nowhere, and no user can have a quota.
        store: Option<At<StatsStore>> = "store";
        /// The name of this node in the store. Absent: that of the machine.
        node: Option<NodeName> = "node";
    }
}

/// The path of a file or the URL of a database, which may hold a password. Wiped when it is dropped.
#[derive(Clone, PartialEq)]
pub struct StatsStore(pub Zeroizing<String>);

impl StatsStore {
    /// Whether it may hold a password.
    pub fn has_secrets(&self) -> bool {
        self.0.contains("://")
    }
}

/// Does not show it.
impl fmt::Debug for StatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatsStore(…)")
    }
}

impl Decode for StatsStore {
    fn kind() -> Kind {
        Kind::text("path, or `postgres://` URL")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let text = Zeroizing::new(String::decode(value, cx)?);
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if text.contains("://") && !is_url {
            let hint = "the path of a file, or a URL that begins with postgres://";
            cx.error(at, "this is no place to keep what users have used", hint);
            return None;
        }
        Some(StatsStore(text))
    }
}

/// The name of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeName(pub String);

impl Decode for NodeName {
    fn kind() -> Kind {
        Kind::text("1 to 64 characters")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let Name(name) = Name::decode(value, cx)?;
        if !(1..=64).contains(&name.chars().count()) {
            cx.error(at, "the name of a node has 1 to 64 characters", "");
            return None;
        }
        Some(NodeName(name))
    }
}
