//! The body layers of protocols, for both of their ends.

pub(crate) mod vmess;
