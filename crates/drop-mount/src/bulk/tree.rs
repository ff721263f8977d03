//! A tree whose files are read by connections of their own.

use std::sync::Arc;

use super::client::{Link, Reads};
use super::message::MAX_LEN;
use crate::forward;
use crate::tree::{
    Attr, Call, EventSink, Extent, Opened, Page, ReadDone, ReadRequest, RemoteTree, Space, Subscription, TreeError,
    TreePath,
};
use sealway_drop::Error;
use sealway_drop::link::Connection;

/// A tree whose files are read by a connection of their own, and which is another tree for everything else.
///
/// Should that connection be lost, what was being read fails, and reads go by the other tree from then on.
pub struct BulkTree<T> {
    control: T,
    link: Link,
}

impl<T: RemoteTree> BulkTree<T> {
    /// Reads of `control`, from now on by `connection`.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn new(control: T, connection: Connection) -> Result<Self, Error> {
        Ok(Self {
            control,
            link: Link::start(connection)?,
        })
    }

    /// What may go by direct connections too.
    pub fn reads(&self) -> Arc<Reads> {
        self.link.reads()
    }
}

impl<T: RemoteTree> RemoteTree for BulkTree<T> {
    forward!(control: attr, list, read_link, open, extent, space, close, subscribe, is_alive);

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        if request.len as usize > MAX_LEN || self.link.is_lost() {
            return self.control.submit(request, done);
        }
        self.link.submit(request, done);
    }
}
