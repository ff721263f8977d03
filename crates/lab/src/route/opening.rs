//! Starting the programs of a route.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::config::Facts;
use super::{
    ATTEMPTS, Engine, MAX_OUTPUT, PADDING, PATIENCE, Role, RouteError, STEP, Stack, form, nginx, refused, stack,
    system, tls,
};
use crate::peer::{self, Folder, Peer, PeerError, proc};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A user's id.
pub(super) fn id() -> Result<String, RouteError> {
    crate::run::run_id().map_err(|error| refused("make an id", error))
}

/// A folder for configurations, which nobody else may look into.
pub(super) fn folder() -> Result<Folder, RouteError> {
    proc::raise_files();
    Folder::temporary("sealway-path-").map_err(system("make a folder"))
}

/// A route while it is made.
pub(super) struct Opening<'a> {
    pub(super) facts: Facts<'a>,
    engine: &'a Engine,
    /// The server first.
    roles: Vec<Role>,
}

impl<'a> Opening<'a> {
    /// Nothing runs yet.
    pub(super) fn new(stack: &Stack, engine: &'a Engine, folder: &'a Folder, id: &'a str) -> Opening<'a> {
        Opening {
            facts: Facts {
                stack: *stack,
                folder: folder.path(),
                id,
                listen: LOOPBACK,
                only: None,
            },
            engine,
            roles: Vec::new(),
        }
    }

    /// The programs, the client first.
    pub(super) fn roles(self) -> Vec<Role> {
        let mut roles = self.roles;
        roles.reverse();
        roles
    }

    /// Starts everything; the entry.
    pub(super) fn run(
        &mut self,
        sink: SocketAddr,
        wire: impl FnOnce(SocketAddr) -> io::Result<SocketAddr>,
    ) -> Result<SocketAddr, RouteError> {
        let mut next = sink;
        if self.facts.stack.has_wire() {
            next = self.server(sink)?;
            if self.facts.stack.needs_nginx() {
                next = self.front(next)?;
            }
        }
        next = wire(next).map_err(system("put something before what the client connects to"))?;
        // Without a server that is the sink itself.
        let target = if self.facts.stack.has_wire() { sink } else { next };
        self.client(next, target)
    }

    /// Starts the server, with its certificate. Where it is not told by a client, it leads to `sink`.
    pub(super) fn server(&mut self, sink: SocketAddr) -> Result<SocketAddr, RouteError> {
        let stack = self.facts.stack;
        if stack.tls {
            tls::make(self.facts.folder).map_err(|what| refused("make a certificate", what))?;
        }
        // A second inbound of the program may begin to listen after the first.
        let at = [self.facts.listen, LOOPBACK];
        let used = if stack.shape == stack::Shape::Fallback { 2 } else { 1 };
        self.start_at("server", &at[..used], |opening, ports| {
            let config = form::server(opening.engine.server().kind(), &opening.facts, ports, sink);
            opening.engine_command(opening.engine.server(), "server", ports[0], &config.to_string())
        })
    }

    /// Starts nginx before the server.
    fn front(&mut self, server: SocketAddr) -> Result<SocketAddr, RouteError> {
        let sni = self.facts.stack.shape == stack::Shape::NginxSni;
        let nginx = nginx::find(sni).map_err(|what| RouteError::Unavailable { what })?;
        self.start_at("front", &[LOOPBACK], |opening, [port, _]| {
            let text = opening.facts.nginx(port, server, nginx.stream_module.as_deref());
            let file = opening.write("front", port, &text)?;
            let mut command = Command::new(&nginx.program);
            command.arg("-p").arg(opening.facts.folder).arg("-c").arg(file);
            command.arg("-e").arg(opening.facts.folder.join("front.log"));
            Ok(command)
        })
    }

    /// Starts the client.
    pub(super) fn client(&mut self, server: SocketAddr, sink: SocketAddr) -> Result<SocketAddr, RouteError> {
        self.start_at("client", &[LOOPBACK], |opening, [port, _]| {
            let config = form::client(opening.engine.kind(), &opening.facts, port, server, sink);
            opening.engine_command(opening.engine, "client", port, &config.to_string())
        })
    }

    /// Starts a program at free ports and waits until it listens at the first of them at each of these addresses; where it listens.
    fn start_at(
        &mut self,
        name: &'static str,
        at: &[IpAddr],
        make: impl Fn(&Self, [u16; 2]) -> Result<Command, RouteError>,
    ) -> Result<SocketAddr, RouteError> {
        let mut attempt = 1;
        loop {
            let ports: [u16; 2] = sealway_net::ports::free().map_err(system("find a free port"))?;
            let addresses: Vec<SocketAddr> = at.iter().copied().zip(ports).map(SocketAddr::from).collect();
            let mut command = make(self, ports)?;
            let started = self.start(name, &mut command).and_then(|role| ready(role, &addresses));
            match started {
                Ok(role) => {
                    self.roles.push(role);
                    return Ok(SocketAddr::new(at.first().copied().unwrap_or(LOOPBACK), ports[0]));
                }
                // Between our look and its start another process can take the port.
                Err(RouteError::Ended { words, .. }) if attempt < ATTEMPTS && words.contains("in use") => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn engine_command(&self, engine: &Engine, role: &str, port: u16, config: &str) -> Result<Command, RouteError> {
        let file = self.write(role, port, config)?;
        let mut command = Command::new(engine.program());
        command.args(engine.kind().arguments(&file));
        Ok(command)
    }

    /// Writes a configuration.
    fn write(&self, role: &str, port: u16, text: &str) -> Result<PathBuf, RouteError> {
        let file = self.facts.folder.join(format!("{role}-{port}.json"));
        proc::write(&file, text).map_err(system("write a configuration"))?;
        Ok(file)
    }

    fn start(&self, name: &'static str, command: &mut Command) -> Result<Role, RouteError> {
        let errors = self.facts.folder.join(format!("{name}.log"));
        let mut options = std::fs::OpenOptions::new();
        let log = options
            .create(true)
            .append(true)
            .open(&errors)
            .map_err(system("make a log"))?;
        command.stdin(Stdio::null()).stderr(log).current_dir(self.facts.folder);
        command.env("SEALWAY_LAB_PADDING", padding()?);
        let peer = Peer::start(command, MAX_OUTPUT).map_err(|source| RouteError::Start { role: name, source })?;
        Ok(Role { name, peer, errors })
    }
}

/// Waits until a program listens at all of `addresses`.
fn ready(mut role: Role, addresses: &[SocketAddr]) -> Result<Role, RouteError> {
    let until = Instant::now() + PATIENCE;
    loop {
        if addresses.iter().all(|&address| proc::listens_at(role.id(), address)) {
            return Ok(role);
        }
        if role.has_ended()? {
            return Err(RouteError::Ended {
                role: role.name,
                words: role.last_words(),
            });
        }
        if peer::is_hurried() {
            return Err(RouteError::Start {
                role: role.name,
                source: PeerError::Leaving,
            });
        }
        if Instant::now() >= until {
            return Err(RouteError::NotReady {
                role: role.name,
                patience: PATIENCE,
                words: role.last_words(),
            });
        }
        std::thread::sleep(STEP);
    }
}

/// Up to 4095 bytes.
fn padding() -> Result<String, RouteError> {
    let seed = crate::run::seed().map_err(|error| refused("draw random bytes", error))?;
    Ok("x".repeat(crate::stats::SplitMix64::new(seed).below(PADDING)))
}
