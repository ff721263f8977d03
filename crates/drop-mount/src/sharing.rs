//! Folders shown to the other end, and its folder mounted here; both at once if wanted.
//!
//! The first connection of a session says who shares and who mounts, and ends the session when it ends: in good order if an end
//! closes it, else with an error. Each folder that is
//! shown has a data connection of its own, on which it is a gRPC service, and one for what its files hold
//! ([`crate::bulk`]): numbers 1 and 3 are served by the responder of the session, 2 and 4 by the initiator. Where it may be changed,
//! and the other end wants to, there is one for that too ([`crate::changes`]): 5 and 6. Beside a relay, content and changes also go directly
//! ([`crate::beside`]).
//!
//! [`share`] does that for one session. [`keep`] goes on when a session is lost: the ends come together again, and what is mounted
//! waits meanwhile. At a port it serves several ends that mount.

mod ending;
mod keep;
mod meeting;
mod mounting;
mod paths;
mod serving;
mod session;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use self::keep::{MOUNTS, Telling, keep};
use self::session::Life;
use crate::fuse::{CopiesBy, MountOptions};
use crate::grpc::KEEPALIVE;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::fault::{Failure, Fault};
use sealway_drop::link::direct::Ways;
use sealway_drop::link::{Connected, GATHER};

/// What this end shows and what it mounts; at least one of them.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that the other end may mount.
    pub share: Option<PathBuf>,
    /// How the other end may change it; `None`: not at all.
    pub writable: Option<Writable>,
    /// Where the folder of the other end is mounted.
    pub mount: Option<PathBuf>,
    /// How it is mounted.
    pub mounting: MountOptions,
    /// How long the further connections of the session may take to come up, [`Duration::MAX`] for ever. Default 30 s.
    pub gather: Duration,
    /// How long [`keep`] tries to find an end again that was lost. Default 1 hour; zero: not at all.
    pub again: Duration,
    /// By what a direct path is looked for where the ends have met at a relay, if it is. The other end learns the addresses of this one by that.
    pub direct: Option<Ways>,
    /// Silence after which the other end is asked whether it is there, and how long it may take to say so. Default 15 s.
    pub keepalive: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            share: None,
            writable: None,
            mount: None,
            mounting: MountOptions::default(),
            gather: GATHER,
            again: Duration::from_secs(3600),
            direct: None,
            keepalive: KEEPALIVE,
        }
    }
}

/// What an end that may change a folder may not use up or touch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Writable {
    /// Bytes of the file system that stay free. Default 256 MiB.
    pub floor: u64,
    /// Whether names that begin with a dot right in a home directory may be changed. Default no.
    pub hidden: bool,
}

impl Default for Writable {
    fn default() -> Self {
        Self {
            floor: 256 << 20,
            hidden: false,
        }
    }
}

/// What is told of a sharing that stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ready {
    /// Who reads the local copies of the mount, if any are kept.
    pub copies: Option<CopiesBy>,
}

/// The folder that is to be shared cannot be opened.
#[derive(Debug)]
pub struct FolderError {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: opening what is shared: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Failure for FolderError {
    fn fault(&self) -> Fault {
        Fault::Storage
    }
}

/// Shares and mounts over one session until the other end is done, the mount is taken away, or `cancel` says so. `ready` is told
/// once what was asked for stands. Local copies of the mount are kept under the key of the other end, if it has proved one.
///
/// An end that is told to stop unmounts and says goodbye, so that the other one ends without an error too. What programs
/// still have open in the mount fails from then on and is not waited for.
///
/// # Errors
/// [`Error::Usage`] if the ends do not fit each other, [`FolderError`] if the folder cannot be used, [`MountError`](crate::fuse::MountError), [`Error::Network`] if the
/// connection broke or the other end does not bring up the connections that it should, [`Error::Remote`] if it gave up.
pub fn share(options: &Options, connected: Connected, cancel: &Cancel, ready: &dyn Fn(Ready)) -> Result<(), Error> {
    let life = Life::new(options, session::folder(options)?, false)?;
    life.session(connected, cancel, &|_| (), ready, &|_| ())
}
