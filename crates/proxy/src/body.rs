//! The body layers of protocols, for both of their ends.

pub(crate) mod shadowsocks;
pub(crate) mod vmess;
