//! Connections over a stream, without the stream: what is read, what is written and what a message is.
//!
//! [`crate::blocking`] drives these values over `std::io`, and the crate `sealway-bip324-tokio` over tokio's streams. They are
//! public for whoever has another kind of stream. All of them work alike: ask for the next step, read or write once, and say
//! how that went.
//!
//! - [`Handshake`] runs until [`Step::Done`], then [`Handshake::finish`] gives both [`Directions`], or says that the peer speaks
//!   v1.
//! - [`Incoming`] is one direction on its way in: [`Incoming::next_message`] gives a message or asks for a read into
//!   [`Incoming::room`].
//! - [`Outgoing`] is one direction on its way out. [`Output`] is what it and a handshake have to write.
//!
//! Both directions know two framings: packets of BIP324 ([`Packets`]) and messages of v1 ([`V1Messages`]).
//!
//! ```
//! use sealway_bip324::stream::{Begun, Handshake, Next, Output, Step, TransportError};
//! use sealway_bip324::{Kind, LocalKey, Magic, Options};
//!
//! /// Moves what is to be written into a stream, which is a vector here.
//! fn write(from: &mut impl Output, stream: &mut Vec<u8>) -> Result<(), TransportError> {
//!     while !from.rest()?.is_empty() {
//!         stream.extend_from_slice(from.rest()?);
//!         let written = from.rest()?.len();
//!         from.wrote(Ok(written))?;
//!     }
//!     from.flushed(Ok(()))
//! }
//!
//! /// Goes on as far as what has come allows; true once the handshake is over.
//! fn go_on(end: &mut Handshake, came: &mut Vec<u8>, sent: &mut Vec<u8>) -> Result<bool, TransportError> {
//!     loop {
//!         write(end, sent)?;
//!         match end.step()? {
//!             Step::Write => {}
//!             Step::Done => return Ok(true),
//!             Step::Read if came.is_empty() => return Ok(false),
//!             Step::Read => {
//!                 let n = end.room().len().min(came.len());
//!                 end.room()[..n].copy_from_slice(&came[..n]);
//!                 came.drain(..n);
//!                 end.came(n)?;
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Both pairs of 32 bytes come from a cryptographic generator.
//! # let (secret_a, random_a, secret_b, random_b) = ([1; 32], [2; 32], [3; 32], [4; 32]);
//! let mut here = Handshake::connect(Magic::REGTEST, LocalKey::new(&secret_a, &random_a)?, Options::default())?;
//! let key = LocalKey::new(&secret_b, &random_b)?;
//! let mut there = Handshake::accept(Vec::new(), Magic::REGTEST, key, Options::default())?;
//! let (mut to_there, mut to_here) = (Vec::new(), Vec::new());
//! while !(go_on(&mut here, &mut to_here, &mut to_there)? & go_on(&mut there, &mut to_there, &mut to_here)?) {}
//! let (Begun::V2(mut here), Begun::V2(mut there)) = (here.finish()?, there.finish()?) else {
//!     panic!("taken for v1")
//! };
//! assert_eq!(here.session_id, there.session_id);
//!
//! here.outgoing.seal(Kind::Genuine, &[b"\x12", b"nonce of a ping"])?;
//! write(&mut here.outgoing, &mut to_there)?;
//! assert_eq!(there.incoming.next_message()?, Next::Read);
//! there.incoming.room()[..to_there.len()].copy_from_slice(&to_there);
//! there.incoming.came(to_there.len())?;
//! let Next::Message(message) = there.incoming.next_message()? else {
//!     panic!("no message")
//! };
//! assert_eq!(there.incoming.bytes(message.body), b"\x12nonce of a ping");
//! # Ok(())
//! # }
//! ```

mod draw;
mod error;
mod framing;
mod handshake;
mod incoming;
mod outgoing;

pub use draw::{draw_garbage, draw_key};
pub use error::{HandshakeError, TransportError};
pub use framing::{Cut, Frame, Framing, Packets, V1Messages};
pub use handshake::{Begun, Directions, Handshake, Step};
pub use incoming::{Incoming, Next, Received};
pub use outgoing::{Outgoing, Output, Sent};
