//! Shadowsocks: both roles, every method, and what comes of bytes that are not as they should be. A program of its
//! own, whose memory and descriptors are counted.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod datagrams;
mod strangers;
mod streams;

use std::time::{SystemTime, UNIX_EPOCH};

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::shadowsocks::Method;

/// Every method, and whether there are two users.
fn cases() -> impl Iterator<Item = (Method, bool)> {
    let all = Method::ALL
        .into_iter()
        .flat_map(|method| [(method, false), (method, true)]);
    all.filter(|(method, two)| !two || !method.is_2022() || method.has_identities())
}

async fn serve(protocol: InboundProtocol) -> Server {
    let settings = server_settings(protocol, ServerTransport::default());
    start(settings).await
}

/// Unix time, so many seconds later.
fn now(later: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() as i64 + later
}
