//! Files sent and received over a session of the file drop.
//!
//! Transfers use blocking threads, one for each data connection: a thread that reads, seals and writes 256 KiB at a time has
//! nothing to gain from a scheduler of its own.
//!
//! # Map
//!
//! - The two ends: [`send`] and [`receive`]; how a transfer ends for both is [`sealway_drop::ending`], their threads are in `workers`.
//! - What is sent: [`source`] finds it and reads it.
//! - Where it goes: [`dest`], a folder out of which nothing leads; an unfinished transfer goes on from its journal.
//! - What both speak of: [`entry`] (a file, folder or link), [`content`] (pieces of files in records), [`hashing`] (how much is hashed),
//!   [`groups`] (hashes of files, in any order).
//! - For people: [`progress`], [`answer`], and [`taking`], what a receiving person is asked.
//!
//! # Example
//!
//! A folder sent to a receiver that takes everything, over loopback:
//!
//! ```
//! use std::net::TcpListener;
//! use std::path::PathBuf;
//! use std::time::Duration;
//!
//! use sealway_aead::choose::Offer;
//! use sealway_aead::cpu::Cpu;
//! use sealway_drop::cancel::Cancel;
//! use sealway_drop::link::{Identity, Place, Setup, connect};
//! use sealway_drop::names::RelPath;
//! use sealway_drop_transfer::dest::{self, Answer, Existing};
//! use sealway_drop_transfer::hashing::Hashing;
//! use sealway_drop_transfer::progress::Progress;
//! use sealway_drop_transfer::receive::{self, Consent, Offered, receive};
//! use sealway_drop_transfer::send::{self, send};
//! use sealway_drop_transfer::source::{ScanOptions, scan};
//! use zeroize::Zeroizing;
//!
//! struct Everything;
//!
//! impl Consent for Everything {
//!     fn accept(&self, _: &Offered) -> Result<(), String> {
//!         Ok(())
//!     }
//!     fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
//!         Answer::Rename
//!     }
//! }
//!
//! let setup = || Setup {
//!     identity: Identity::Code(Zeroizing::new(b"castle-lemon-opera".to_vec())),
//!     offer: Offer::of(Cpu::get()),
//!     strong: false,
//! };
//! let (source, output) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let folder: PathBuf = source.path().join("folder");
//! std::fs::create_dir(&folder)?;
//! std::fs::write(folder.join("file"), "content")?;
//!
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let place = Place::Dial {
//!     addresses: vec![listener.local_addr()?],
//!     patience: Duration::from_secs(10),
//! };
//! let receiving = receive::Options {
//!     output: output.path().to_owned(),
//!     dest: dest::Options::default(),
//!     hashing: Hashing::Sampled,
//!     direct: None,
//! };
//! let receiver = std::thread::spawn(move || {
//!     let connected = connect(Place::Listen(listener), &setup(), 2, &Cancel::new())?;
//!     receive(&receiving, connected, &Progress::new(), &Cancel::new(), &Everything)
//! });
//!
//! let sending = send::Options {
//!     paths: vec![folder],
//!     hashing: Hashing::Sampled,
//!     direct: None,
//!     transfer_secret: Zeroizing::new([7; 32]),
//! };
//! let found = scan(&sending.paths, ScanOptions::default(), &mut |_| {})?;
//! let connected = connect(place, &setup(), 2, &Cancel::new())?;
//! let sent = send(&sending, &found, connected, &Progress::new(), &Cancel::new())?;
//! assert_eq!((sent.placed, sent.failed), (1, 0));
//! receiver.join().expect("the thread ends")?;
//! assert_eq!(std::fs::read_to_string(output.path().join("folder/file"))?, "content");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod answer;
pub mod beneath;
pub mod content;
pub mod dest;
pub mod entry;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod groups;
pub mod hashing;
pub mod progress;
pub mod receive;
pub mod send;
pub mod source;
mod stat;
pub mod taking;
mod workers;
