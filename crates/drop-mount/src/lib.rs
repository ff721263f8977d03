//! Folders shared and mounted over a session of the file drop.
//!
//! # Map
//!
//! - [`tree`]: what a shared folder is to whoever reads it: a trait, a tree in memory, and one that outlives its connection.
//! - The end that shares: [`local`] serves a folder of this machine, [`grpc`] answers for a tree over one connection, [`bulk`] moves
//!   file content over others, [`changes`] takes changes where they are allowed.
//! - The end that mounts: [`grpc::GrpcTree`] and [`bulk::BulkTree`] are the tree of the other end, which
//!   [`changes::ChangingTree`] makes one that can be changed; [`fuse`] mounts a tree, [`cache`] keeps whole files on a disk.
//! - [`beside`]: direct connections past a relay, by which content and changes go as long as they stand.
//! - [`sharing`]: sessions that do all of this, and find each other again when their connections are lost.
//!
//! # Example
//!
//! A folder read through the service, without a session between:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use sealway_drop_mount::grpc::{GrpcTree, ServeOptions, serve};
//! use sealway_drop_mount::local::{LocalOptions, LocalTree};
//! use sealway_drop_mount::tree::{Call, RemoteTree, TreePath};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("file"), "content")?;
//! let shared = Arc::new(LocalTree::open(folder.path(), LocalOptions::default())?);
//!
//! let runtime = tokio::runtime::Runtime::new()?;
//! let (here, there) = tokio::io::duplex(1 << 16);
//! runtime.spawn(serve(there, shared, ServeOptions::default()));
//! let tree = runtime.block_on(GrpcTree::connect(here))?;
//!
//! let call = Call::within(Duration::from_secs(10));
//! let file = tree.open(&TreePath::parse(b"file")?, &call)?;
//! assert_eq!(&tree.read(file.handle, 0, 100, &call)?.data[..], b"content");
//! tree.close(file.handle);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod beside;
pub mod bulk;
pub mod cache;
pub mod changes;
pub mod fuse;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
mod line;
pub mod local;
pub mod sharing;
pub mod tree;
