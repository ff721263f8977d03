//! Which program on this machine a client is.
//!
//! The system says which socket has the client's address, and each process which sockets it holds (`/proc`). That takes a
//! look at every process, so it is done when a rule needs it and the client is on this machine, and remembered briefly. What
//! belongs to other users shows to root only. On systems other than Linux nothing is found.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sealway_v2ray::Network;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::settings::{ProcessMatch, Processes};

/// How long an answer is remembered. A port has another owner soon.
const REMEMBERED: Duration = Duration::from_secs(2);
/// Most answers that are remembered.
const MAX_REMEMBERED: usize = 1024;
/// Searches at a time; more would only take the processor from each other.
const MAX_SEARCHES: usize = 2;

/// A program that runs on this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    pub(crate) pid: u32,
    /// The absolute path of its file.
    pub(crate) path: String,
}

impl Program {
    /// The name of its file.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Programs of which a client must be one.
pub(crate) struct Programs {
    wanted: Processes,
    /// The path of our own file.
    own: Option<String>,
}

impl Programs {
    pub(crate) fn new(wanted: &Processes) -> Self {
        let own = std::env::current_exe().ok();
        Programs {
            wanted: wanted.clone(),
            own: own.and_then(|path| path.into_os_string().into_string().ok()),
        }
    }

    pub(crate) fn matches(&self, program: &Program) -> bool {
        self.wanted.0.iter().any(|wanted| match wanted {
            ProcessMatch::Name(name) => program.name() == name,
            ProcessMatch::Path(path) => program.path == *path,
            ProcessMatch::Folder(folder) => program.path.starts_with(folder.as_str()),
            ProcessMatch::OwnProcess => program.pid == std::process::id(),
            ProcessMatch::OwnProgram => self.own.as_ref() == Some(&program.path),
        })
    }
}

/// A client's end of a connection.
type End = (Network, SocketAddr);

/// Finds programs by the addresses of their sockets.
pub(crate) struct Finder {
    remembered: Mutex<HashMap<End, (Instant, Option<Arc<Program>>)>>,
    searches: Semaphore,
}

impl Default for Finder {
    fn default() -> Self {
        Finder {
            remembered: Mutex::default(),
            searches: Semaphore::new(MAX_SEARCHES),
        }
    }
}

impl Finder {
    /// The program whose socket has this address.
    pub(crate) async fn find(&self, network: Network, client: SocketAddr) -> Option<Arc<Program>> {
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        let end = (network, client);
        if let Some(program) = self.recall(&end) {
            return program;
        }
        if !is_here(client.ip()) {
            return None;
        }
        let _turn = self.searches.acquire().await.ok()?;
        // Somebody may have asked for the same meanwhile.
        if let Some(program) = self.recall(&end) {
            return program;
        }
        let program = tokio::task::spawn_blocking(move || linux::find(network, client));
        let program = program.await.ok().flatten().map(Arc::new);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        }
        if remembered.len() < MAX_REMEMBERED {
            remembered.insert(end, (Instant::now(), program.clone()));
        }
        program
    }

    fn recall(&self, end: &End) -> Option<Option<Arc<Program>>> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, program) = remembered.get(end)?;
        (since.elapsed() < REMEMBERED).then(|| program.clone())
    }
}

/// Whether an address is one of this machine.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(not(target_os = "linux"))]
mod linux {
    pub(super) fn find(_: super::Network, _: super::SocketAddr) -> Option<super::Program> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux;

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(wanted: Vec<ProcessMatch>) -> Programs {
        Programs {
            own: Some("/opt/sealway".into()),
            wanted: Processes(wanted),
        }
    }

    #[test]
    fn programs_are_told_by_name_path_and_folder() {
        let program = |pid, path: &str| Program { pid, path: path.into() };
        let curl = program(7, "/usr/bin/curl");
        for (wanted, fits) in [
            (ProcessMatch::Name("curl".into()), true),
            (ProcessMatch::Name("url".into()), false),
            (ProcessMatch::Path("/usr/bin/curl".into()), true),
            (ProcessMatch::Path("/bin/curl".into()), false),
            (ProcessMatch::Folder("/usr/".into()), true),
            (ProcessMatch::Folder("/usr/b/".into()), false),
            (ProcessMatch::OwnProcess, false),
            (ProcessMatch::OwnProgram, false),
        ] {
            assert_eq!(programs(vec![wanted.clone()]).matches(&curl), fits, "{wanted:?}");
        }
        let own = program(std::process::id(), "/x");
        assert!(programs(vec![ProcessMatch::OwnProcess]).matches(&own));
        assert!(programs(vec![ProcessMatch::OwnProgram]).matches(&program(7, "/opt/sealway")));
        assert!(!programs(vec![]).matches(&own));
    }

    /// Sockets of this process, of both families and kinds, lead back to it.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_owner_of_a_socket_is_found() {
        let finder = Finder::default();
        let own = std::env::current_exe().unwrap();
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let listener = std::net::TcpListener::bind(listen).unwrap();
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_, seen) = listener.accept().unwrap();
            let found = finder.find(Network::Tcp, seen).await.unwrap();
            assert_eq!(
                (found.pid, found.path.as_str()),
                (std::process::id(), own.to_str().unwrap())
            );
            // It is remembered, so the same answer comes though the socket is gone.
            drop(client);
            assert!(finder.find(Network::Tcp, seen).await.is_some());
            assert!(Finder::default().find(Network::Tcp, seen).await.is_none());
            let socket = UdpSocket::bind(listen).unwrap();
            let found = finder.find(Network::Udp, socket.local_addr().unwrap()).await;
            assert_eq!(found.unwrap().pid, std::process::id());
        }
        // An IPv6 socket that speaks to an IPv4 address.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mapped = format!("[::ffff:127.0.0.1]:{}", listener.local_addr().unwrap().port());
        let _client = std::net::TcpStream::connect(mapped).unwrap();
        let (_, seen) = listener.accept().unwrap();
        assert!(finder.find(Network::Tcp, seen).await.is_some());
        // Nobody's, and not of this machine.
        assert!(
            finder
                .find(Network::Udp, "127.0.0.1:1".parse().unwrap())
                .await
                .is_none()
        );
        assert!(
            finder
                .find(Network::Tcp, "192.0.2.1:443".parse().unwrap())
                .await
                .is_none()
        );
        assert!(!is_here("192.0.2.1".parse().unwrap()));
    }

    #[tokio::test]
    async fn only_so_many_answers_are_remembered() {
        let finder = Finder::default();
        for port in 0..=MAX_REMEMBERED as u16 {
            let end = (Network::Tcp, SocketAddr::from(([127, 0, 0, 1], port)));
            let mut remembered = finder.remembered.lock().unwrap();
            remembered.insert(end, (Instant::now(), None));
        }
        let _ = finder.find(Network::Udp, "127.0.0.1:9".parse().unwrap()).await;
        assert_eq!(finder.remembered.lock().unwrap().len(), MAX_REMEMBERED + 1);
    }
}
