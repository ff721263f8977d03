//! Files given to, and taken from, someone who has nothing but a browser or curl.
//!
//! # Map
//!
//! - [`server`] listens, and answers whoever has the link. What it serves is opened by `shared`, found beneath it and nowhere else; files that
//!   come go through `upload` into a [`sealway_drop_transfer::dest`].
//! - `answer` decides what a request gets; `wire` carries it, files without passing them through this program where the kernel can.
//! - Without sockets and files: [`path`] (what is asked for), [`range`], [`head`] (conditions, hosts, origins, names), [`form`], [`media`],
//!   [`zip`] and [`tar`], [`page`] (HTML), [`qr`], [`secret`].
//! - [`certificate`]: by what browsers know this machine. [`telling`]: what whoever runs the server hears.
//!
//! # Example
//!
//! A folder shared without TLS on loopback:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::sync::Arc;
//!
//! use sealway_drop::cancel::Cancel;
//! use sealway_drop_web::server::{Options, Server, What};
//! use sealway_drop_web::telling::Quiet;
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("file"), "content")?;
//! let options = Options {
//!     address: "127.0.0.1:0".parse()?,
//!     what: What::Share { paths: vec![folder.path().into()], hidden: false, uploads: None },
//!     certificate: None,
//!     pin: None,
//!     names: vec![],
//! };
//! let server = Server::bind(options, Arc::new(Quiet))?;
//! let (address, link) = (server.address(), server.links().remove(0));
//! let (cancel, stop) = (Cancel::new(), Cancel::clone);
//! let running = std::thread::spawn({
//!     let cancel = stop(&cancel);
//!     move || server.run(&cancel)
//! });
//!
//! let path = link.splitn(4, '/').last().unwrap_or_default();
//! let mut client = std::net::TcpStream::connect(address)?;
//! write!(client, "GET /{path}file HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\ncontent"));
//! cancel.cancel();
//! running.join().expect("the thread ends")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod answer;
mod archive;
mod body;
pub mod certificate;
pub mod error;
pub mod form;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod guesses;
pub mod head;
pub mod media;
pub mod page;
pub mod path;
pub mod qr;
pub mod range;
pub mod secret;
pub mod server;
mod shared;
pub mod tar;
pub mod telling;
mod upload;
mod waited;
mod wire;
pub mod zip;
