//! A client, a gateway and a server, each in a network namespace of its own, and all of them in namespaces that end with the
//! process: nothing of the machine's own network is touched.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sealway_proxy::Server;
use sealway_proxy::gateway::{Plan, Wishes};
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{self, Options, load};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

/// Set in a process that has namespaces of its own.
const INSIDE: &str = "SEALWAY_INSIDE_NAMESPACES";

/// Where servers of the site listen, one a service.
pub(crate) const ECHO: u16 = 7000;
pub(crate) const SINK: u16 = 7001;
pub(crate) const DNS: u16 = 53;
/// The transparent inbound.
pub(crate) const DOOR: u16 = 12_345;

pub(crate) const SERVER: &str = "9.9.9.9";
pub(crate) const SERVER_V6: &str = "2620:fe::9";
/// Another address of the server, which is a resolver's.
pub(crate) const RESOLVER: &str = "8.8.8.8";
/// A private address of the server.
pub(crate) const INNER: &str = "192.168.7.7";
/// The gateway as clients see it, and as servers do.
pub(crate) const GATE: &str = "192.168.1.1";
pub(crate) const OUTSIDE: &str = "9.9.9.1";
pub(crate) const OUTSIDE_V6: &str = "2620:fe::1";
/// How a question begins that is answered from another address.
pub(crate) const ELSEWHERE: &[u8] = b"elsewhere";
/// The access log, in memory that goes with the namespaces.
pub(crate) const LOG: &str = "/run/access.log";
/// A client with a public address.
pub(crate) const PUBLIC: &str = "9.8.7.6";

/// What the three are and how they are joined.
const SITE: &str = "
for name in client gate server; do
    ip netns add $name
    ip -n $name link set lo up
done
ip -n gate link add lan type veth peer name eth0 netns client
ip -n gate link add wan type veth peer name eth0 netns server
ip -n gate address add 192.168.1.1/24 dev lan
ip -n gate address add fd00:1::1/64 dev lan nodad
ip -n gate address add 9.9.9.1/24 dev wan
ip -n gate address add 2620:fe::1/64 dev wan nodad
ip -n gate link set lan up
ip -n gate link set wan up
ip -n client address add 192.168.1.2/24 dev eth0
ip -n client address add 9.8.7.6/32 dev eth0
ip -n client address add fd00:1::2/64 dev eth0 nodad
ip -n client link set eth0 up
ip -n client route add default via 192.168.1.1 src 192.168.1.2
ip -n client route add default via fd00:1::1
ip -n server address add 9.9.9.9/24 dev eth0
ip -n server address add 2620:fe::9/64 dev eth0 nodad
ip -n server address add 8.8.8.8/32 dev lo
ip -n server address add 192.168.7.7/32 dev lo
ip -n server link set eth0 up
ip -n gate route add default via 9.9.9.9
ip -n gate route add default via 2620:fe::9
ip -n gate route add 9.8.7.6/32 via 192.168.1.2
";

/// Runs the body of the test `name` with namespaces of its own, in a process of its own. Skipped where the system or the peers
/// do not allow it.
pub(crate) fn inside(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        shell(SITE);
        return body();
    }
    if !is_possible() {
        return;
    }
    let test = std::env::current_exe().unwrap();
    let mut command = apart();
    command
        .arg("mount -t tmpfs none /run && exec \"$@\"")
        .arg("sh")
        .arg(test);
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    let output = command.output().unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    eprintln!("{text}");
}

/// A shell in namespaces of its own, where it may do everything. They end with it, and it with the thread that begins it.
fn apart() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["sh", "-ec"]);
    command
}

/// Whether there can be namespaces, and rules in them; says so if not, and fails where there must be.
fn is_possible() -> bool {
    const RULES: &str = "mount -t tmpfs none /run
        ip netns add one
        ip netns exec one nft 'add table inet t; add chain inet t c { type filter hook prerouting priority mangle; };
            add rule inet t c meta l4proto udp tproxy ip6 to :1 accept'";
    let tried = apart().arg(RULES).output();
    let why = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    assert!(
        std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
        "SEALWAY_REQUIRE_PEERS=1, but there can be no network namespaces with rules (scripts/install-peers): {why}"
    );
    eprintln!("SKIPPED: no network namespaces with rules: {why}");
    false
}

/// Runs a script, which must succeed.
#[track_caller]
pub(crate) fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a script in a namespace.
#[track_caller]
pub(crate) fn shell_on(name: &str, script: &str) {
    let mut child = Command::new("ip")
        .args(["netns", "exec", name, "sh", "-e"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{script}");
}

/// Has the gateway forward what nothing is done to, and servers know the way back.
pub(crate) fn forward() {
    shell(
        "ip netns exec gate sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        ip -n server route add 192.168.1.0/24 via 9.9.9.1
        ip -n server route add fd00:1::/64 via 2620:fe::1",
    );
}

/// Runs something in a namespace, on a thread and a runtime of its own that stay.
pub(crate) fn on<T: Send + 'static>(name: &str, what: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let path = format!("/run/netns/{name}");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let namespace = File::open(&path).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let _ = tell.send(runtime.block_on(what()));
        // What it has left running goes on until the process ends.
        runtime.block_on(std::future::pending::<()>());
    });
    told.recv_timeout(Duration::from_secs(120)).unwrap()
}

/// Starts what clients reach: at each address, streams and datagrams are answered with who asked, and whom.
pub(crate) fn serve() {
    on("server", async || {
        for host in [SERVER, SERVER_V6, RESOLVER, INNER] {
            listen(host).await;
        }
    });
    // Services of the gateway itself.
    on("gate", async || {
        for host in [GATE, OUTSIDE, OUTSIDE_V6] {
            listen(host).await;
        }
    });
}

async fn listen(host: &str) {
    let ip: IpAddr = host.parse().unwrap();
    for (port, sinks) in [(ECHO, false), (SINK, true)] {
        let socket = if ip.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }
        .unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(SocketAddr::new(ip, port)).unwrap();
        tokio::spawn(answer_streams(socket.listen(4096).unwrap(), sinks));
    }
    for port in [ECHO, DNS] {
        // As resolvers do, it lets others have the port at other addresses.
        let at = SocketAddr::new(ip, port);
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.bind(&at.into()).unwrap();
        tokio::spawn(answer_datagrams(UdpSocket::from_std(socket.into()).unwrap()));
    }
}

async fn answer_streams(listener: TcpListener, sinks: bool) {
    while let Ok((mut stream, from)) = listener.accept().await {
        tokio::spawn(async move {
            let own = stream.local_addr().unwrap();
            stream.write_all(format!("{} to {own}\n", from.ip()).as_bytes()).await?;
            let (mut read, mut write) = stream.split();
            if sinks {
                let taken = tokio::io::copy(&mut read, &mut tokio::io::sink()).await?;
                write.write_all(taken.to_string().as_bytes()).await
            } else {
                tokio::io::copy(&mut read, &mut write).await.map(drop)
            }
        });
    }
}

/// Answers from where it was asked, or from another address and port if the question begins so.
async fn answer_datagrams(socket: UdpSocket) {
    let own = socket.local_addr().unwrap();
    let elsewhere = UdpSocket::bind((RESOLVER, 0)).await;
    let mut buffer = vec![0; 65_535];
    while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
        let mut answer = format!("{} to {own}\n", from.ip()).into_bytes();
        answer.extend_from_slice(&buffer[..len]);
        let by = match &elsewhere {
            Ok(other) if buffer[..len].starts_with(ELSEWHERE) => other,
            _ => &socket,
        };
        let _ = by.send_to(&answer, from).await;
    }
}

/// Connects, and what the server says of who asked.
pub(crate) async fn asks(to: &str, port: u16) -> std::io::Result<(TcpStream, String)> {
    let mut stream = tokio::time::timeout(Duration::from_secs(60), TcpStream::connect((to, port))).await??;
    let told = hears(&mut stream).await?;
    Ok((stream, told))
}

/// The same, from a port that may be used towards others too.
pub(crate) async fn asks_from(own: u16, to: &str) -> std::io::Result<(TcpStream, String)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from(([0; 4], own)))?;
    let at = SocketAddr::new(to.parse().unwrap(), ECHO);
    let mut stream = tokio::time::timeout(Duration::from_secs(20), socket.connect(at)).await??;
    let told = hears(&mut stream).await?;
    Ok((stream, told))
}

pub(crate) async fn hears(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut told = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_secs(20), stream.read_u8()).await?? {
            b'\n' => return Ok(String::from_utf8(told).unwrap()),
            byte => told.push(byte),
        }
    }
}

/// Sends a datagram, once, and waits for the answer, which must come from where it was sent to.
pub(crate) async fn asks_by_datagram(to: &str, port: u16) -> Option<String> {
    let any = if to.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).await.unwrap();
    // A connected socket takes answers from there only.
    socket.connect((to, port)).await.unwrap();
    let mut buffer = vec![0; 2048];
    socket.send(b"question").await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut buffer)).await;
    let len = answer.ok()?.ok()?;
    let answer = String::from_utf8(buffer[..len].to_vec()).unwrap();
    Some(answer.strip_suffix("\nquestion").unwrap().to_owned())
}

/// Who carries what the rules lead to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Proxy {
    /// The engine under test, in this process.
    Ours,
    Xray,
}

/// A proxy that runs.
pub(crate) enum Running {
    #[expect(dead_code)]
    Ours(Server),
    Peer(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Peer(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Proxy {
    /// Those that are here.
    pub(crate) fn all() -> Vec<Proxy> {
        let xray = Command::new("xray").arg("version").output();
        if xray.is_ok_and(|output| output.status.success()) {
            return vec![Proxy::Ours, Proxy::Xray];
        }
        assert!(
            std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
            "SEALWAY_REQUIRE_PEERS=1, but xray is not installed (scripts/install-peers)"
        );
        eprintln!("SKIPPED: xray is not installed");
        vec![Proxy::Ours]
    }

    /// Runs a configuration on the gateway, with the rules that it needs.
    pub(crate) fn run(self, config: &Value, wishes: &Wishes) -> Running {
        let plan = plan(config, wishes);
        let running = self.run_without_rules(config);
        shell_on("gate", &plan.apply);
        running
    }

    pub(crate) fn run_without_rules(self, config: &Value) -> Running {
        let running = match self {
            Proxy::Ours => {
                let settings = settings(config);
                Running::Ours(on("gate", async || start(settings).await))
            }
            Proxy::Xray => {
                let mut child = Command::new("ip")
                    .args(["netns", "exec", "gate", "xray", "run"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                let text = config.to_string();
                child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
                Running::Peer(child)
            }
        };
        // Whether it listens shows from outside; what it does with such a connection is its own affair.
        let until = Instant::now() + Duration::from_secs(30);
        let listens = || on("gate", async || TcpStream::connect((GATE, DOOR)).await.is_ok());
        while !listens() {
            assert!(Instant::now() < until, "{self:?} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        running
    }
}

/// Starts our server. The one before it may still be about to let go of its port.
async fn start(settings: Settings) -> Server {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match Server::start(settings.clone()).await {
            Ok(server) => return server,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A configuration's text, as our settings.
pub(crate) fn settings(config: &Value) -> Settings {
    let text = config.to_string();
    let file = config::File {
        name: "config.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    Settings::from_config(&config).unwrap()
}

/// The rules for a configuration.
pub(crate) fn plan(config: &Value, wishes: &Wishes) -> Plan {
    Plan::new(&settings(config), wishes).unwrap()
}

/// Undoes the rules of a configuration.
pub(crate) fn undo(config: &Value, wishes: &Wishes) {
    shell_on("gate", &plan(config, wishes).undo);
}
