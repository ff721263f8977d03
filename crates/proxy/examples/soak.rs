//! Many idle connections and a churn of short ones through a pair of `sealway run`, with the memory and the descriptors of
//! the server process over time. `scripts/soak` builds what is needed and runs it; docs/dev/soak.md says what it judges.
//!
//! `soak PROGRAM [CONNECTIONS] [CHURN_SECONDS]`

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const NAME: &str = "server.example";
/// Connections being opened, or churned, at once.
const AT_ONCE: usize = 32;
/// Clients that have not said who they are.
const STRANGERS: usize = 2000;
/// Most memory one of them may cost, KiB.
const STRANGER_KIB: f64 = 24.0;
/// Descriptors that may be open in the end besides those of the beginning: pipes that threads keep for the next splice.
const SPARE_DESCRIPTORS: usize = 80;
/// How often the same work is done. The first time fills what threads and the allocator keep.
const ROUNDS: usize = 3;
/// What the last round may take more than the one before: a share, and MiB.
const GROWTH: (f64, f64) = (1.10, 4.0);

/// What a process has at one moment.
#[derive(Clone, Copy)]
struct Sample {
    rss_mib: f64,
    anonymous_mib: f64,
    /// Of all TCP sockets of the machine.
    kernel_mib: f64,
    descriptors: usize,
}

impl Sample {
    fn of(pid: u32) -> Result<Sample> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mib = |key: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
            kib.unwrap_or(f64::NAN) / 1024.0
        };
        let sockets = std::fs::read_to_string("/proc/net/sockstat")?;
        let tcp = sockets.lines().find(|line| line.starts_with("TCP:"));
        let pages = tcp.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok());
        Ok(Sample {
            rss_mib: mib("VmRSS:"),
            anonymous_mib: mib("RssAnon:"),
            kernel_mib: pages.unwrap_or(f64::NAN) * 4.0 / 1024.0,
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        })
    }
}

/// A program that ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// The table that is printed, and what it is measured on.
struct Meter {
    server: u32,
    since: Instant,
}

impl Meter {
    fn head() {
        println!("| phase | s | connections | RSS MiB | anonymous MiB | kernel TCP MiB | descriptors |");
        println!("|---|---:|---:|---:|---:|---:|---:|");
    }

    fn row(&self, phase: &str, connections: usize) -> Result<Sample> {
        let sample = Sample::of(self.server)?;
        println!(
            "| {phase} | {:.0} | {connections} | {:.1} | {:.1} | {:.1} | {} |",
            self.since.elapsed().as_secs_f64(),
            sample.rss_mib,
            sample.anonymous_mib,
            sample.kernel_mib,
            sample.descriptors
        );
        Ok(sample)
    }

    /// Waits until the server's descriptors are down to `most`, for at most a minute.
    async fn settle(&self, most: usize) -> Result<bool> {
        let until = Instant::now() + Duration::from_secs(60);
        while Sample::of(self.server)?.descriptors > most {
            if Instant::now() > until {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(true)
    }
}

/// Writes the configurations of a pair: a door, VLESS over TLS, the target.
fn write(folder: &Path, door: u16, server: u16, target: u16) -> Result<String> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(folder.join("c.pem"), made.cert.pem())?;
    std::fs::write(folder.join("k.pem"), made.signing_key.serialize_pem())?;
    let at = folder.display();
    let policy = r#""policy": {"levels": {"0": {"connIdle": 7200, "handshake": 600}}}"#;
    let config = format!(
        r#"{{{policy}, "inbounds": [{{"listen": "127.0.0.1", "port": {server}, "protocol": "vless",
            "settings": {{"decryption": "none", "clients": [{{"id": "{ID}"}}]}},
            "streamSettings": {{"security": "tls", "tlsSettings": {{"certificates": [
                {{"certificateFile": "{at}/c.pem", "keyFile": "{at}/k.pem"}}]}}}}}}],
        "outbounds": [{{"protocol": "freedom", "settings": {{"finalRules": [{{"action": "allow"}}]}}}}]}}"#
    );
    std::fs::write(folder.join("server.json"), config)?;
    let config = format!(
        r#"{{{policy}, "inbounds": [{{"listen": "127.0.0.1", "port": {door}, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {target}}}}}],
        "outbounds": [{{"protocol": "vless", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {server},
                "users": [{{"id": "{ID}", "encryption": "none"}}]}}]}},
            "streamSettings": {{"security": "tls", "tlsSettings": {{"serverName": "{NAME}", "disableSystemRoot": true,
                "certificates": [{{"usage": "verify", "certificateFile": "{at}/c.pem"}}]}}}}}}]}}"#
    );
    std::fs::write(folder.join("client.json"), config)?;
    Ok(made.cert.pem())
}

fn run(program: &str, config: &Path) -> Result<Running> {
    let child = Command::new(program)
        .args(["run", "-c"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    Ok(Running(child))
}

/// Answers every connection with what it says.
async fn echo(listener: TcpListener) {
    loop {
        let Ok((mut tcp, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        tokio::spawn(async move {
            // Small: ten thousand of these wait here too.
            let mut buffer = [0; 512];
            while let Ok(got @ 1..) = tcp.read(&mut buffer).await {
                if tcp.write_all(&buffer[..got]).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A connection from one of many loopback addresses, for one address does not have ports enough.
async fn dial(to: SocketAddr, number: usize) -> Result<TcpStream> {
    let [a, b] = u16::try_from(number / 1000 % 60_000 + 2)?.to_be_bytes();
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 1, a, b), 0)))?;
    Ok(tokio::time::timeout(Duration::from_secs(60), socket.connect(to)).await??)
}

/// Sends `len` bytes and takes as many.
async fn exchange(stream: &mut TcpStream, len: usize) -> Result<()> {
    let (sent, mut got) = (vec![7; len], vec![0; len]);
    let both = async {
        stream.write_all(&sent).await?;
        stream.read_exact(&mut got).await
    };
    tokio::time::timeout(Duration::from_secs(60), both).await??;
    if got != sent {
        return Err("garbled".into());
    }
    Ok(())
}

async fn open(door: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let mut opened = Vec::with_capacity(count);
    let mut opening = JoinSet::new();
    for number in 0..count {
        if opening.len() >= AT_ONCE
            && let Some(done) = opening.join_next().await
        {
            opened.push(done??);
        }
        opening.spawn(async move {
            let mut stream = dial(door, number).await?;
            exchange(&mut stream, 64).await?;
            Result::Ok(stream)
        });
    }
    while let Some(done) = opening.join_next().await {
        opened.push(done??);
    }
    Ok(opened)
}

/// Short connections until the time is over. Returns how many there were.
async fn churn(door: SocketAddr, meter: &Meter, idle: usize, time: Duration) -> Result<u64> {
    let (over, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut workers = JoinSet::new();
    for worker in 0..AT_ONCE {
        let (over, made) = (Arc::clone(&over), Arc::clone(&made));
        workers.spawn(async move {
            let mut number = worker * 1000;
            while !over.load(Ordering::Relaxed) {
                let mut stream = dial(door, number).await?;
                exchange(&mut stream, 20_000).await?;
                made.fetch_add(1, Ordering::Relaxed);
                number += 1000 * AT_ONCE;
            }
            Result::Ok(())
        });
    }
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(time / 4).await;
        meter.row("churn", idle)?;
    }
    over.store(true, Ordering::Relaxed);
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(made.load(Ordering::Relaxed))
}

/// Memory, over what the server began with, of each client that has said half of what it must. Within TLS, or before it is
/// through.
async fn strangers(server: SocketAddr, pem: &str, within_tls: bool, meter: &Meter, start: Sample) -> Result<f64> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let (mut plain, mut sealed) = (Vec::new(), Vec::new());
    for number in 0..STRANGERS {
        let mut tcp = dial(server, number).await?;
        if within_tls {
            let mut stream = connector.connect(ServerName::try_from(NAME)?, tcp).await?;
            stream.write_all(&[0; 9]).await?;
            stream.flush().await?;
            sealed.push(stream);
        } else {
            // The first 300 bytes of a ClientHello that says it has 512.
            let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
            hello.resize(300, 7);
            tcp.write_all(&hello).await?;
            plain.push(tcp);
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let phase = if within_tls {
        "half a VLESS header"
    } else {
        "half a ClientHello"
    };
    let after = meter.row(phase, STRANGERS)?;
    Ok((after.anonymous_mib - start.anonymous_mib) * 1024.0 / STRANGERS as f64)
}

/// One round: idle connections, churn beside them, all closed. Returns the sample with all of them open and idle.
async fn round(door: SocketAddr, meter: &Meter, count: usize, time: Duration) -> Result<Sample> {
    let idle = open(door, count).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let all = meter.row("idle", count)?;
    let made = churn(door, meter, count, time).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    meter.row(&format!("after {made} short ones"), count)?;
    drop(idle);
    Ok(all)
}

/// Waits until `attempt` works.
async fn ready(attempt: impl AsyncFn() -> Result<()>) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = attempt().await {
        if Instant::now() > until {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

async fn soak(program: &str, count: usize, time: Duration) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let [door, server] = sealway_net::ports::free()?;
    let pem = write(folder.path(), door, server, listener.local_addr()?.port())?;
    tokio::spawn(echo(listener));
    let (server_json, client_json) = (folder.path().join("server.json"), folder.path().join("client.json"));
    let (door, server) = (
        SocketAddr::from(([127, 0, 0, 1], door)),
        SocketAddr::from(([127, 0, 0, 1], server)),
    );
    let since = Instant::now();
    let (mut good, mut said) = (true, Vec::new());
    let mut judge = |what: String, right: bool| {
        good &= right;
        said.push(format!("{}: {what}", if right { "ok" } else { "FAILED" }));
    };
    Meter::head();
    for within_tls in [false, true] {
        // Each on a server of its own: what the allocator has kept from one kind would hide what the next one costs.
        let served = run(program, &server_json)?;
        let meter = Meter {
            server: served.0.id(),
            since,
        };
        ready(async || dial(server, 0).await.map(drop)).await?;
        let start = meter.row("start", 0)?;
        let kib = strangers(server, &pem, within_tls, &meter, start).await?;
        let what = format!("{kib:.1} KiB per client that has not said who it is (at most {STRANGER_KIB})");
        judge(what, kib <= STRANGER_KIB);
    }
    let served = run(program, &server_json)?;
    let _client = run(program, &client_json)?;
    let meter = Meter {
        server: served.0.id(),
        since,
    };
    ready(async || open(door, 1).await.map(drop)).await?;
    let start = meter.row("start", 0)?;
    let spare = start.descriptors + SPARE_DESCRIPTORS;
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        let all = round(door, &meter, count, time).await?;
        let back = meter.settle(spare).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let closed = meter.row("all closed", 0)?;
        let what = format!(
            "round {number}: {} descriptors when all is closed (at most {spare})",
            closed.descriptors
        );
        judge(what, back);
        rounds.push((all, closed));
    }
    let (before_last, last) = (rounds[ROUNDS - 2], rounds[ROUNDS - 1]);
    for (what, earlier, later) in [
        ("with all idle", before_last.0, last.0),
        ("when all is closed", before_last.1, last.1),
    ] {
        let most = earlier.anonymous_mib * GROWTH.0 + GROWTH.1;
        let what = format!(
            "{:.1} MiB anonymous {what} in the last round (the one before: {:.1}, at most {most:.1})",
            later.anonymous_mib, earlier.anonymous_mib
        );
        judge(what, later.anonymous_mib <= most);
    }
    println!("\n{}", said.join("\n"));
    let per = |sample: Sample| (sample.anonymous_mib - start.anonymous_mib) * 1024.0 / count as f64;
    println!(
        "{:.1} KiB anonymous memory of the server per idle connection, over the {:.1} MiB it began with",
        per(rounds[0].0),
        start.anonymous_mib
    );
    Ok(good)
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(program) = args.next() else {
        eprintln!("usage: soak PROGRAM [CONNECTIONS] [CHURN_SECONDS]");
        return ExitCode::from(2);
    };
    let (Ok(count), Ok(seconds)) = (
        args.next().unwrap_or("10000".into()).parse::<usize>(),
        args.next().unwrap_or("30".into()).parse::<u64>(),
    ) else {
        eprintln!("CONNECTIONS and CHURN_SECONDS are numbers");
        return ExitCode::from(2);
    };
    // Each connection is two sockets here, as it is in either program. Only root may raise the hard limit.
    let limit = getrlimit(Resource::Nofile);
    let need = ((2 * count).max(STRANGERS) + 500) as u64;
    let raised = Rlimit {
        current: Some(limit.maximum.unwrap_or(need).max(need)),
        maximum: limit.maximum.map(|most| most.max(need)),
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        eprintln!(
            "{count} connections need {need} descriptors a process, and the hard limit is {}; raise it or ask for fewer",
            limit.maximum.unwrap_or_default()
        );
        return ExitCode::from(2);
    }
    match soak(&program, count.max(1), Duration::from_secs(seconds.max(1))).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(1)
        }
    }
}
