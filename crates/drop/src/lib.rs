//! Files sent, received, shared and mounted over a sealed session.

#![forbid(unsafe_code)]

pub mod fuse;
pub mod grpc;
pub mod local;
pub mod tree;
