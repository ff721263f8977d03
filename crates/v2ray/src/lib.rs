//! The V2Ray family on the wire, its `config.json` and its share links.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: bytes, times and random bytes come in as
//! arguments, and bytes and events go out. Needing more input is a normal result ([`Step::More`]), so every parser can
//! be driven by sockets, by a test that feeds one byte at a time, or by a fuzzer.
//!
//! ```
//! use sealway_v2ray::{Destination, Domain, Step, UserId, vless};
//!
//! let mut users = vless::Users::new();
//! users.insert(UserId::parse("b831381d-6324-4d53-ad4f-8cda48b30811")?, "alice")?;
//!
//! // A client sends a header, and the first payload behind it.
//! let mut wire = Vec::new();
//! let to = Destination::tcp(Domain::new("example.com")?, 443);
//! let request = vless::Request {
//!     id: UserId::parse("b831381d-6324-4d53-ad4f-8cda48b30811")?,
//!     flow: vless::Flow::None,
//!     command: vless::Command::Connect(to.clone()),
//! };
//! request.encode(&mut wire);
//! wire.extend_from_slice(b"hello");
//!
//! // The server looks at what has come so far.
//! assert_eq!(vless::Request::decode(&wire[..20])?, Step::More(1));
//! let Step::Done { value, used } = vless::Request::decode(&wire)? else { panic!("the header is complete") };
//! assert_eq!(value.command, vless::Command::Connect(to));
//! assert_eq!(users.find(&value.id).map(|found| *found.user), Some("alice"));
//! assert_eq!(&wire[used..], b"hello");
//! # Ok::<(), sealway_v2ray::Error>(())
//! ```
//!
//! # Where what is
//!
//! | Modules | What they hold |
//! |---|---|
//! | [`vless`], [`vmess`], [`trojan`], [`shadowsocks`], [`socks`], [`http`] | protocols: requests, responses, bodies, users |
//! | [`mux`], [`packet_addr`] | many streams and datagrams of any target in one stream |
//! | [`ws`], [`httpupgrade`], [`gun`], [`h2`], [`xhttp`], [`proxy_protocol`] | what stands around a protocol on the wire |
//! | [`sniff`] | what a connection carries and which host it is for, out of its first bytes |
//! | [`address`], [`id`], [`replay`], [`text`], [`Step`], [`Error`] | what all of them use |
//! | [`config`] | `config.json`: from text to valid values, or to problems with line and column |
//! | [`link`] | share links, to and from the outbounds of [`config`] |
//!
//! # A configuration
//!
//! ```
//! use sealway_v2ray::config::{File, Options, load};
//!
//! let text = br#"{
//!     // Comments may stand anywhere.
//!     "inbounds": [{"listen": "127.0.0.1", "port": 1080, "protocol": "sokcs"}],
//!     "outbounds": [{"protocol": "freedom"}]
//! }"#;
//! let loaded = load(&[File { name: "config.json", text }], &Options::default());
//! assert!(loaded.config.is_none());
//! assert_eq!(
//!     loaded.problems[0].to_string(),
//!     "config.json:3:68: error: inbounds[0].protocol: \"sokcs\" is not known here (did you mean \"socks\"?)"
//! );
//! ```

#![forbid(unsafe_code)]

pub mod address;
pub mod config;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gun;
pub mod h2;
pub mod http;
pub mod httpupgrade;
pub mod id;
mod json;
pub mod link;
pub mod mux;
pub mod packet_addr;
mod problem;
pub mod proxy_protocol;
pub mod replay;
pub mod shadowsocks;
pub mod sniff;
pub mod socks;
mod step;
pub mod text;
pub mod trojan;
pub mod vless;
pub mod vmess;
pub mod ws;
pub mod xhttp;

pub use address::{Address, Destination, Domain, Network};
pub use error::{Error, Protocol};
pub use id::{UserId, same_secret};
pub use sealway_aead::Fault;
pub use step::Step;
