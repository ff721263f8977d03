//! Sockets and files that every program of the workspace needs, without protocols.
//!
//! A server is made of three of these: [`listen::bind`] takes a port, [`listen::accept`] hands on one connection after
//! another, and a [`Drain`] lets them finish when the server ends. A client resolves a name and gives the addresses to
//! [`dial::race`], or to [`blocking::connect`] where threads wait. [`splice`] moves bytes from one socket to another inside
//! the kernel, and [`replace`] writes files that are never seen half written.
//!
//! ```
//! use std::time::Duration;
//!
//! use sealway_net::{Drain, dial, listen};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let listener = TcpListener::from_std(listen::bind("127.0.0.1:0".parse().unwrap())?)?;
//! let address = listener.local_addr()?;
//! let (drain, alive) = Drain::new();
//! tokio::spawn(async move {
//!     let serve = |(mut tcp, _): (TcpStream, _)| {
//!         let connection = alive.clone();
//!         tokio::spawn(async move { connection.run(async move { tcp.write_all(b"hello").await }).await });
//!     };
//!     alive.accepting(listen::accept(|| listener.accept(), serve)).await;
//! });
//!
//! let (mut tcp, _) = dial::race([address], TcpStream::connect).await.unwrap();
//! let mut said = String::new();
//! tcp.read_to_string(&mut said).await?;
//! assert_eq!(said, "hello");
//! assert!(drain.finish(Duration::from_secs(1)).await);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod blocking;
pub mod dial;
pub mod drain;
pub mod listen;
pub mod options;
pub mod ports;
pub mod replace;
pub mod sock;
pub mod splice;

pub use drain::{Alive, Drain};
pub use sock::Sock;
