//! A proxied route as real processes on loopback: whoever connects to its entry reaches a given address, by way of a
//! client and a server.
//!
//! ```text
//! generator -> entry of the client -> protocol -> [nginx] -> server -> sink
//! ```
//!
//! Every program gets the same configuration (sing-box and shoes in their own forms), made here and kept in a folder that nobody else may read, with an id and a
//! certificate (P-256) made for this route. TLS is version 1.3 with AES-128-GCM at both ends, but for stacks that are named after another suite; logs, statistics and sniffing
//! are off, and so is multiplexing in all stacks but the one named after it; the rest is each program's default. Programs run in process groups of their own, with up to
//! 4095 random bytes more in their environment, so that no layout of the stack is favoured, and are killed when the route
//! is dropped. They listen on 127.0.0.1 only, but for the server of a route between two hosts. Needs Linux: readiness is read from `/proc`.

mod config;
pub mod engine;
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod fakes;
mod form;
mod guest;
mod half;
mod kind;
#[cfg(test)]
mod liar_tests;
mod linked;
mod nginx;
mod opening;
mod pair;
mod settings;
mod shoes;
mod sing_box;
mod stack;
mod tls;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::peer::proc::Memory;
pub use engine::Engine;
pub use guest::Guest;
pub(crate) use half::Served;
pub use pair::Pair;
pub use stack::Stack;

/// Names of all programs that routes are made of, besides our own.
pub(crate) const PROGRAMS: [&str; 5] = ["xray", "v2ray", "sing-box", "shoes", "nginx"];

/// What readers call a [`Stack`], for those who meet the word for the first time.
pub(crate) const WHAT_A_TRANSPORT_IS: &str = "A transport is what carries bytes from the client to the server: a proxy protocol, which says where \
    they go, over TCP or what looks like web traffic, and mostly TLS or a cipher of its own, which seals them. --stack chooses.";

use crate::link::Relay;
use crate::peer::{Folder, Peer, PeerError, proc};
use crate::run::CellError;
use opening::Opening;

/// How long a program may take until it listens. Only what hangs takes long.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a starting program is looked at.
const STEP: Duration = Duration::from_millis(2);

/// Most bytes of standard output that are taken; logs are off.
const MAX_OUTPUT: usize = 1 << 20;

/// Lines and bytes of a program's last words.
const LAST_LINES: usize = 5;
const LAST_BYTES: usize = 2000;

/// Bytes of padding in the environment: below this.
const PADDING: usize = 4096;

/// How often ports are chosen anew when somebody else takes one first.
const ATTEMPTS: usize = 4;

/// What figures of a proxied route cannot show.
pub(crate) const LIMITS: [&str; 3] = [
    "Everything runs on this machine over loopback: no loss, no distance, no limit of a network card, and a large MTU, unless a link is emulated, which has no packets but bytes in order.",
    "Client, server, generator and sink share the CPUs of this machine; on machines of their own, rates differ more than CPU time does.",
    "One configuration a transport, with defaults elsewhere: other settings of a peer can be faster or slower.",
];

/// Why there is no route. Nothing of it runs any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum RouteError {
    /// What the stack needs besides the engine is not there.
    Unavailable {
        /// What, and what to do.
        what: String,
    },
    /// A program cannot be started.
    Start {
        /// Its role.
        role: &'static str,
        /// Why.
        source: PeerError,
    },
    /// A program ended before it listened.
    Ended {
        /// Its role.
        role: &'static str,
        /// Its last words.
        words: String,
    },
    /// A program did not listen in time.
    NotReady {
        /// Its role.
        role: &'static str,
        /// The time it had.
        patience: Duration,
        /// Its last words.
        words: String,
    },
    /// A program is gone while it should run.
    Gone {
        /// Its role.
        role: &'static str,
    },
    /// The system refused a call.
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's own words.
        what: String,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |words: &str| match words {
            "" => ", and said nothing".to_owned(),
            words => format!("; its last words: {words}"),
        };
        match self {
            RouteError::Unavailable { what } => f.write_str(what),
            RouteError::Start { role, source } => write!(f, "the {role} does not start: {source}"),
            RouteError::Ended { role, words } => write!(f, "the {role} ended before it listened{}", said(words)),
            RouteError::NotReady { role, patience, words } => write!(
                f,
                "the {role} did not listen within {} s (a script must exec its program){}",
                patience.as_secs_f64(),
                said(words)
            ),
            RouteError::Gone { role } => write!(f, "the {role} is not running any more"),
            RouteError::System { doing, what } => write!(f, "cannot {doing}: {what}"),
        }
    }
}

impl std::error::Error for RouteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RouteError::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<RouteError> for CellError {
    fn from(error: RouteError) -> CellError {
        match error {
            RouteError::Unavailable { .. } => CellError::unavailable(error),
            _ => CellError::failed(error),
        }
    }
}

fn refused(doing: &'static str, what: impl fmt::Display) -> RouteError {
    let what = what.to_string();
    RouteError::System { doing, what }
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> RouteError {
    move |error| refused(doing, error)
}

/// A program of a route.
#[derive(Debug)]
pub struct Role {
    name: &'static str,
    peer: Peer,
    errors: PathBuf,
}

impl Role {
    /// `client`, `server` or `front`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.peer.id()
    }

    fn has_ended(&mut self) -> Result<bool, RouteError> {
        let role = self.name;
        self.peer
            .has_ended()
            .map_err(|source| RouteError::Start { role, source })
    }

    /// The end of what the program has said.
    fn last_words(&self) -> String {
        let mut said = self.peer.output();
        said.push(b'\n');
        said.extend(proc::end_of(&self.errors, LAST_BYTES as u64).unwrap_or_default());
        proc::tail(&said, LAST_LINES, LAST_BYTES)
    }
}

/// A route that runs. Dropping it kills its programs.
#[derive(Debug)]
pub struct Route {
    entry: SocketAddr,
    /// Clients first: they must not outlive what they speak to, or they would say so.
    roles: Vec<Role>,
    /// The emulated link, if there is one.
    relay: Option<Relay>,
    _folder: Option<Folder>,
}

impl Route {
    /// Starts the programs of a stack and waits until all of them listen.
    ///
    /// # Errors
    /// [`RouteError`]; whatever was started has been ended then.
    pub fn open(stack: &Stack, engine: &Engine, sink: SocketAddr) -> Result<Route, RouteError> {
        Route::open_over(stack, engine, sink, Ok)
    }

    /// A route without programs.
    pub fn direct(sink: SocketAddr) -> Route {
        Route::new(sink, Vec::new(), None)
    }

    fn new(entry: SocketAddr, roles: Vec<Role>, folder: Option<Folder>) -> Route {
        Route {
            entry,
            roles,
            relay: None,
            _folder: folder,
        }
    }

    /// As [`Route::open`], with something of the caller's between the client and what it connects to: `wire` is given that
    /// address and says which one the client gets instead.
    ///
    /// # Errors
    /// [`RouteError`]; whatever was started has been ended then.
    pub fn open_over(
        stack: &Stack,
        engine: &Engine,
        sink: SocketAddr,
        wire: impl FnOnce(SocketAddr) -> io::Result<SocketAddr>,
    ) -> Result<Route, RouteError> {
        if !stack.has_programs() {
            return Ok(Route::direct(sink));
        }
        if let Some(what) = engine.lacks(stack) {
            return Err(RouteError::Unavailable { what });
        }
        let (id, folder) = (opening::id()?, opening::folder()?);
        let mut opening = Opening::new(stack, engine, &folder, &id);
        let entry = opening.run(sink, wire)?;
        let roles = opening.roles();
        Ok(Route::new(entry, roles, Some(folder)))
    }

    /// Where to connect to.
    pub fn entry(&self) -> SocketAddr {
        self.entry
    }

    /// The programs, the client first; none in a direct route.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// CPU time of each role since its start, user and system together.
    ///
    /// # Errors
    /// [`RouteError::Gone`] when a program has ended.
    pub fn cpu(&self) -> Result<Vec<(&'static str, Duration)>, RouteError> {
        self.of_each(proc::cpu)
    }

    /// Memory of each role; the peak since [`Route::reset_memory`].
    ///
    /// # Errors
    /// [`RouteError::Gone`] when a program has ended.
    pub fn memory(&self) -> Result<Vec<(&'static str, Memory)>, RouteError> {
        self.of_each(proc::memory)
    }

    /// What the system says of each role.
    fn of_each<T>(&self, read: fn(u32) -> Option<T>) -> Result<Vec<(&'static str, T)>, RouteError> {
        let of = |role: &Role| match read(role.id()) {
            Some(found) => Ok((role.name, found)),
            None => Err(RouteError::Gone { role: role.name }),
        };
        self.roles.iter().map(of).collect()
    }

    /// Sets the peaks of memory back to what is resident now. Where the system does not allow it they are those of the
    /// programs' whole lives.
    pub fn reset_memory(&self) {
        for role in &self.roles {
            proc::reset_peak(role.id());
        }
    }

    /// Holds all programs: until [`Route::resume`] they cost nothing but memory.
    pub fn pause(&self) {
        for role in &self.roles {
            role.peer.pause();
        }
    }

    /// Lets the programs go on.
    pub fn resume(&self) {
        for role in &self.roles {
            role.peer.resume();
        }
    }

    /// Fails if a program has ended.
    ///
    /// # Errors
    /// [`RouteError::Gone`] or what the system said.
    pub fn check(&mut self) -> Result<(), RouteError> {
        self.check_link()?;
        for role in &mut self.roles {
            if role.has_ended()? {
                return Err(RouteError::Gone { role: role.name });
            }
        }
        Ok(())
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
