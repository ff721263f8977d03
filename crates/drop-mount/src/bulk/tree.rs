//! A tree whose files are read by connections of their own.

use std::sync::Arc;

use super::client::{Link, Reads};
use super::message::MAX_LEN;
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
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.control.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.control.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.control.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.control.open(path, call)
    }

    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        self.control.extent(handle, offset, call)
    }

    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        self.control.space(call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        if request.len as usize > MAX_LEN || self.link.is_lost() {
            return self.control.submit(request, done);
        }
        self.link.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.control.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.control.subscribe(sink)
    }

    fn is_alive(&self) -> bool {
        self.control.is_alive()
    }
}
