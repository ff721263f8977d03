//! Services of this program behind the inbounds.

use std::fmt;
use std::sync::Arc;

use tokio::net::UnixStream;

/// A service of this program. A connection that the rules lead to its tag is handed to it, whatever its target.
#[derive(Clone)]
pub struct Service {
    /// The tag that rules name it by. It is no outbound: balancers do not choose it.
    pub tag: String,
    /// Takes one end of a connection. Called within the tokio runtime of the server; it must not wait.
    pub connect: Arc<dyn Fn(UnixStream) + Send + Sync>,
}

impl Service {
    /// One that takes nothing, for a tag whose service is not there yet.
    pub fn nobody(tag: &str) -> Service {
        Service {
            tag: tag.to_owned(),
            connect: Arc::new(drop),
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({:?})", self.tag)
    }
}

impl PartialEq for Service {
    /// Whether it is the same function under the same tag.
    fn eq(&self, other: &Service) -> bool {
        self.tag == other.tag && Arc::ptr_eq(&self.connect, &other.connect)
    }
}
