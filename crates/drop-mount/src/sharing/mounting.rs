//! The tree of the other end, by the connections that a session has for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::beside::Beside;
use crate::bulk::BulkTree;
use crate::changes::ChangingTree;
use crate::grpc::GrpcTree;
use crate::grpc::stream::SealedStream;
use crate::tree::RemoteTree;
use sealway_drop::Error;
use sealway_drop::link::Connection;

/// The tree by its service, and by connections for content and changes where they are. What of it may go by direct connections is put
/// `beside`.
pub(super) fn theirs_by(
    runtime: &Handle,
    stream: SealedStream<tokio::net::TcpStream>,
    keepalive: Duration,
    (content, changes): (Option<Connection>, Option<Connection>),
    beside: &mut Beside,
) -> Result<Arc<dyn RemoteTree>, Error> {
    let tree = runtime.block_on(GrpcTree::connect_with(stream, keepalive))?;
    let Some(content) = content else {
        return changing(tree, changes, beside);
    };
    let tree = BulkTree::new(tree, content)?;
    beside.reads = Some(tree.reads());
    changing(tree, changes, beside)
}

/// A tree that is changed by a connection, if there is one for that.
fn changing(
    tree: impl RemoteTree + 'static,
    changes: Option<Connection>,
    beside: &mut Beside,
) -> Result<Arc<dyn RemoteTree>, Error> {
    let Some(changes) = changes else {
        return Ok(Arc::new(tree));
    };
    let tree = ChangingTree::new(tree, changes)?;
    beside.asked = Some(tree.asked());
    Ok(Arc::new(tree))
}
