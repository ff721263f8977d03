//! The relay of the file drop: two ends that cannot reach each other meet there.
//!
//! It is blind: it sees a small number (a nameplate) or a random token, and then bytes that only the two ends can read. What
//! it could do, it can do to the bytes only: lose or change them, which the session notices. The messages, and the way of clients
//! here, are in [`sealway_drop::relay`] and `docs/reference/relay.md`.
//!
//! # Map
//!
//! `server` accepts and ends; `client` is what happens to one connection; `waiting` says who waits for whom, `limits` how much of
//! everything there may be; `carry` moves bytes between two ends; `stats` counts.
//!
//! # Example
//!
//! One end opens a nameplate, the other claims it:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::sync::{Arc, mpsc};
//!
//! use sealway_drop::cancel::Cancel;
//! use sealway_drop::relay::{Meeting, meet};
//! use sealway_drop_relay::{Limits, Server};
//!
//! let server = Server::bind("127.0.0.1:0".parse()?, Limits::default())?;
//! let (address, cancel) = (server.address().to_string(), Cancel::new());
//! let relay = std::thread::spawn({
//!     let cancel = cancel.clone();
//!     move || server.run(&cancel)
//! });
//!
//! let (tell, told) = mpsc::channel();
//! let open = Meeting::Open(Arc::new(move |number| drop(tell.send(number))));
//! let first = std::thread::spawn({
//!     let address = address.clone();
//!     move || meet(&address, &open, &Cancel::new())
//! });
//! let (mut second, _) = meet(&address, &Meeting::Claim(told.recv()?), &Cancel::new())?;
//! let (mut first, _) = first.join().expect("the thread ends")?;
//! first.write_all(b"hello")?;
//! let mut heard = [0; 5];
//! second.read_exact(&mut heard)?;
//! assert_eq!(&heard, b"hello");
//!
//! drop((first, second));
//! cancel.cancel();
//! assert_eq!(relay.join().expect("the thread ends")?.pairs, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod carry;
mod client;
mod limits;
mod server;
mod stats;
mod waiting;

pub use limits::Limits;
pub use server::Server;
pub use stats::{Counters, Stats};
