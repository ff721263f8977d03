//! The shared folder as a gRPC service, over any stream of bytes that is sealed already.
//!
//! One HTTP/2 connection on one stream, without TCP or TLS of its own. [`serve`] answers for a tree, [`GrpcTree`] is the
//! tree at the other end. The definition is `proto/sealway_drop_v1.proto`; its code is kept beside this file.

mod client;
mod control;
pub(crate) mod convert;
pub mod files;
mod io;
pub mod plain;
mod server;
pub mod stream;

pub use client::GrpcTree;
pub use server::{Handles, ServeOptions, serve, serve_with};

/// Messages and stubs: the output of the generator, kept so that building needs no `protoc`; `tests/proto.rs` makes it again and compares.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#[allow(unused_imports)]
pub mod proto {
    include!("grpc/sealway.drop.v1.rs");
}

/// Bytes of file content in one message.
pub(crate) const PIECE: usize = 512 << 10;
/// Longest content of a message that is taken.
const MAX_PIECE: usize = 1 << 20;
/// Longest message: a piece, or a page of long names.
const MAX_MESSAGE: usize = 2 << 20;
/// What one stream may send unasked. A window must hold what is on its way: 16 MiB are 400 MB/s at 40 ms.
const STREAM_WINDOW: u32 = 16 << 20;
/// What all streams of a connection may send unasked.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Longest HTTP/2 frame taken.
const FRAME: u32 = 1 << 20;
/// Silence after which the other end is asked whether it is there, and how long it may take to say so.
pub(crate) const KEEPALIVE: std::time::Duration = std::time::Duration::from_secs(15);

/// A task that ends when this is dropped.
pub(crate) struct Aborted(pub(crate) tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}
