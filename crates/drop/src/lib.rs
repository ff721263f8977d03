//! Files sent, received, shared and mounted over a sealed session.

#![forbid(unsafe_code)]

mod beneath;
pub mod dest;
pub mod entry;
pub mod fault;
pub mod names;
pub mod ranges;
pub mod source;
