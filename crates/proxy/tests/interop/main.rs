//! Sealway and other people's programs: V2Ray and Xray in both roles, nginx in front and behind, curl as a client.
//!
//! A test that lacks its program says so and passes; with SEALWAY_REQUIRE_PEERS=1 that is a failure. What a peer is known
//! to lack stands in a table and is tested like everything else: the day it is there, a test says so.
#![allow(clippy::unwrap_used)]

mod announce;
mod chain;
#[path = "../common/mod.rs"]
mod common;
mod curl;
mod dns;
mod early;
mod ends;
mod grpc;
#[path = "../engine/sniffing/hello.rs"]
mod hello;
mod http2;
#[path = "../common/inner.rs"]
mod inner;
mod kinds;
mod lacks;
mod matrix;
mod mux;
mod nginx;
mod programs;
mod reality;
mod reality_client;
mod reality_pairs;
mod routes;
mod shadowsocks;
mod shape;
mod sniffing;
mod through;
mod tunnels;
mod vision;
mod vision_kinds;
mod ways;
mod xhttp;
