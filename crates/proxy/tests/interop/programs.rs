//! Programs under test: found, started with a configuration, waited for, ended whatever happens.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sealway_proxy::Server;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tokio::time::Instant;

use crate::common::settings_of;

/// Who runs a configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Program {
    /// The engine under test, in this process.
    Ours,
    V2ray,
    Xray,
}

pub(crate) const PEERS: [Program; 2] = [Program::V2ray, Program::Xray];

/// Fails with what went wrong between two programs, if anything did.
pub(crate) fn nothing_is_wrong(client: Program, server: Program, wrong: &[String]) {
    let ends = format!("{} -> {}", client.name(), server.name());
    assert!(wrong.is_empty(), "{ends}:\n{}", wrong.join("\n"));
}

/// Both ends are ours.
pub(crate) const OURS: [Program; 2] = [Program::Ours, Program::Ours];
/// Xray is the client of ours.
pub(crate) const XRAY_IN: [Program; 2] = [Program::Xray, Program::Ours];
/// Xray is the server of ours.
pub(crate) const XRAY_OUT: [Program; 2] = [Program::Ours, Program::Xray];

/// True if client and server can be started.
pub(crate) fn there(programs: [Program; 2]) -> bool {
    programs.into_iter().all(Program::there)
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Ours => "sealway",
            Program::V2ray => "v2ray",
            Program::Xray => "xray",
        }
    }

    /// True if it can be started. See [`have`].
    pub(crate) fn there(self) -> bool {
        match self {
            Program::Ours => true,
            Program::V2ray => have("v2ray", &["-version"]),
            Program::Xray => have("xray", &["version"]),
        }
    }

    /// Runs a configuration and waits until everything in it listens.
    pub(crate) async fn run(self, place: &Place, config: &Value) -> Running {
        // Xray would send datagrams inside Mux.Cool, which `mux.rs` is about.
        self.run_in(place, config, &[("XRAY_CONE_DISABLED", "true")]).await
    }

    /// The same with other environment variables.
    pub(crate) async fn run_in(self, place: &Place, config: &Value, environment: &[(&str, &str)]) -> Running {
        let file = place.write("config.json", &config.to_string());
        let arguments = [OsStr::new("-config"), file.as_os_str()];
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A process that another test has forked a moment ago may hold a port that was let go, until it has become
            // another program.
            let taken = if self == Program::Ours {
                match Server::start(settings_of(config)).await {
                    Ok(server) => return Running::Ours(server),
                    Err(error) => error.to_string(),
                }
            } else {
                let mut process = Process::start(self.name(), &arguments, environment, place);
                match process.comes_up(&listeners(config)).await {
                    Ok(()) => return Running::Peer(process),
                    Err(output) => output,
                }
            };
            // In the words of the peers, and in ours.
            let is_taken = ["ddress already in use", "another program listens there"];
            let again = is_taken.iter().any(|words| taken.contains(words)) && Instant::now() < deadline;
            assert!(again, "{} does not start: {taken}", self.name());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Has a peer read a configuration without running it: whether it takes it, and what it says.
    pub(crate) fn reads(self, place: &Place, config: &Value) -> (bool, String) {
        self.reads_text(place, &config.to_string())
    }

    /// The same of its text.
    pub(crate) fn reads_text(self, place: &Place, config: &str) -> (bool, String) {
        let file = place.write("config.json", config);
        let output = Command::new(self.name()).args(["-test", "-config"]).arg(file).output();
        said(&output.unwrap())
    }
}

/// Whether it went well, and both outputs.
pub(crate) fn said(output: &Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// True if the program can be started; says so if not, and fails where it must be there.
pub(crate) fn have(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).output();
    if found.is_ok_and(|out| out.status.success()) {
        return true;
    }
    assert!(
        std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
        "SEALWAY_REQUIRE_PEERS=1, but {program} is not installed (scripts/install-peers)"
    );
    eprintln!("SKIPPED: {program} is not installed");
    false
}

/// A folder and a loopback address of one program's own, so that its ports meet nobody else's.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) host: IpAddr,
    held: Mutex<Vec<(Socket, UdpSocket)>>,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().unwrap(),
            host: own_loopback(),
            held: Mutex::default(),
        }
    }

    /// A port on the address, free for TCP and UDP. It is kept until [`Place::let_go`].
    pub(crate) fn port(&self) -> u16 {
        loop {
            // It does not listen: a process that is forked meanwhile has it for a moment longer, and whoever waits for the
            // program must not be answered by that.
            let tcp = Socket::new(Domain::for_address(self.at(0)), Type::STREAM, None).unwrap();
            tcp.bind(&self.at(0).into()).unwrap();
            let port = tcp.local_addr().unwrap().as_socket().unwrap().port();
            if let Ok(udp) = UdpSocket::bind((self.host, port)) {
                self.held.lock().unwrap().push((tcp, udp));
                return port;
            }
        }
    }

    /// Lets the ports go, for the program that is to have them.
    pub(crate) fn let_go(&self) {
        self.held.lock().unwrap().clear();
    }

    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.host, port)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same as text, for a configuration.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Waits until a file has a line that `fits`, and returns it.
    pub(crate) async fn line(&self, name: &str, fits: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
            if let Some(line) = text.lines().find(|line| fits(line)) {
                return line.to_owned();
            }
            assert!(Instant::now() < deadline, "{name} lacks the line; it has:\n{text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A random address of 127.0.0.0/8.
pub(crate) fn own_loopback() -> IpAddr {
    let mut bytes = [0; 3];
    getrandom::fill(&mut bytes).unwrap();
    // Neither 127.0.x.x, where everyone else is, nor an end of the range.
    IpAddr::from([127, bytes[0] % 200 + 20, bytes[1], bytes[2] % 250 + 2])
}

/// How long a program may take for what takes milliseconds, on a machine that is busy with something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Something to connect to.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    /// A path, or `@` and an abstract name, or `@@` and one that fills the address.
    Unix(String),
}

impl Endpoint {
    fn answers(&self) -> bool {
        match self {
            Endpoint::Tcp(address) => std::net::TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok(),
            Endpoint::Unix(name) => match name.strip_prefix('@') {
                None => UnixStream::connect(name).is_ok(),
                Some(name) => {
                    let mut bytes = name.as_bytes().to_vec();
                    if bytes.first() == Some(&b'@') {
                        // All of the address, the name's own zero byte taken off.
                        bytes.remove(0);
                        bytes.resize(107, 0);
                    }
                    std::os::unix::net::SocketAddr::from_abstract_name(bytes)
                        .and_then(|name| UnixStream::connect_addr(&name))
                        .is_ok()
                }
            },
        }
    }
}

/// Where a configuration's inbounds listen, but those for datagrams only.
fn listeners(config: &Value) -> Vec<Endpoint> {
    let inbounds = config["inbounds"].as_array().unwrap();
    let streams = inbounds
        .iter()
        .filter(|inbound| inbound["settings"]["network"] != "udp");
    let endpoint = |inbound: &Value| {
        let listen = inbound["listen"].as_str().unwrap();
        match listen.parse() {
            Ok(ip) => Endpoint::Tcp(SocketAddr::new(ip, inbound["port"].as_u64().unwrap() as u16)),
            Err(_) => Endpoint::Unix(listen.to_owned()),
        }
    };
    streams.map(endpoint).collect()
}

/// What runs until it is dropped.
pub(crate) enum Running {
    Ours(#[expect(dead_code, reason = "held")] Server),
    Peer(#[expect(dead_code, reason = "held")] Process),
}

/// A running process, killed at the end with whatever it has started.
pub(crate) struct Process {
    child: Child,
    name: String,
    output: PathBuf,
}

impl Process {
    /// Starts it in a place. Must be called on the thread of the test itself: the process ends with the thread.
    pub(crate) fn start(program: &str, arguments: &[&OsStr], environment: &[(&str, &str)], place: &Place) -> Process {
        let output = place.path("output");
        let file = std::fs::File::create(&output).unwrap();
        // Nothing is left behind even if this process is killed before it can clean up: then the kernel does it.
        let mut command = Command::new("setpriv");
        let child = command
            .args(["--pdeathsig", "KILL", "--", program])
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(place.path(""))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("setpriv (util-linux) starts {program}: {error}"));
        Process {
            child,
            name: program.to_owned(),
            output,
        }
    }

    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Waits until it listens everywhere, as it must.
    pub(crate) async fn listens(&mut self, at: &[Endpoint]) {
        if let Err(output) = self.comes_up(at).await {
            panic!("{} ended: {output}", self.name);
        }
    }

    /// The same; or what it had to say before it ended.
    async fn comes_up(&mut self, at: &[Endpoint]) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        for endpoint in at {
            while !endpoint.answers() {
                if self.child.try_wait().unwrap().is_some() {
                    return Err(self.output());
                }
                let late = Instant::now() >= deadline;
                assert!(
                    !late,
                    "{} does not listen at {endpoint:?}: {}",
                    self.name,
                    self.output()
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
