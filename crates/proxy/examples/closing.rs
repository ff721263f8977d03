//! What the end of many idle connections costs the others: latency of kept connections through a pair of proxies while all
//! idle ones close at once. Several programs are measured side by side, in turns.
//!
//! `closing ROUNDS IDLE KEPT PROGRAM...`, where `PROGRAM` takes the name of a configuration file (examples/serve does).

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const NAME: &str = "server.example";
/// What is looked at on either side of the close.
const WINDOW: Duration = Duration::from_millis(1000);

/// A program that ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Writes the configurations of a pair with a door for each target; returns the doors' ports.
fn write(folder: &Path, targets: [u16; 2]) -> Result<[u16; 2]> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(folder.join("c.pem"), made.cert.pem())?;
    std::fs::write(folder.join("k.pem"), made.signing_key.serialize_pem())?;
    let at = folder.display();
    let [server, doors @ ..]: [u16; 3] = sealway_net::ports::free()?;
    let config = format!(
        r#"{{"inbounds": [{{"listen": "127.0.0.1", "port": {server}, "protocol": "vless",
            "settings": {{"decryption": "none", "clients": [{{"id": "{ID}"}}]}},
            "streamSettings": {{"security": "tls", "tlsSettings": {{"certificates": [
                {{"certificateFile": "{at}/c.pem", "keyFile": "{at}/k.pem"}}]}}}}}}],
        "outbounds": [{{"protocol": "freedom", "settings": {{"finalRules": [{{"action": "allow"}}]}}}}]}}"#
    );
    std::fs::write(folder.join("server.json"), config)?;
    let inbounds: Vec<String> = doors
        .iter()
        .zip(targets)
        .map(|(door, target)| {
            format!(
                r#"{{"listen": "127.0.0.1", "port": {door}, "protocol": "dokodemo-door",
                "settings": {{"address": "127.0.0.1", "port": {target}}}}}"#
            )
        })
        .collect();
    let config = format!(
        r#"{{"inbounds": [{}],
        "outbounds": [{{"protocol": "vless", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {server},
                "users": [{{"id": "{ID}", "encryption": "none"}}]}}]}},
            "streamSettings": {{"security": "tls", "tlsSettings": {{"serverName": "{NAME}", "disableSystemRoot": true,
                "certificates": [{{"usage": "verify", "certificateFile": "{at}/c.pem"}}]}}}}}}]}}"#,
        inbounds.join(",")
    );
    std::fs::write(folder.join("client.json"), config)?;
    Ok(doors)
}

fn run(program: &str, config: &Path) -> Result<Running> {
    let child = Command::new(program)
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    Ok(Running(child))
}

async fn echo(listener: TcpListener) {
    while let Ok((mut tcp, _)) = listener.accept().await {
        let _ = tcp.set_nodelay(true);
        tokio::spawn(async move {
            let mut buffer = [0; 256];
            while let Ok(got @ 1..) = tcp.read(&mut buffer).await {
                if tcp.write_all(&buffer[..got]).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A thread with a runtime of its own.
fn thread() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

async fn dial(door: u16) -> Result<TcpStream> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let attempt = async {
            let mut stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], door))).await?;
            stream.set_nodelay(true)?;
            stream.write_all(&[1]).await?;
            stream.read_u8().await?;
            Ok::<_, std::io::Error>(stream)
        };
        match attempt.await {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > until => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn dial_all(door: u16, count: usize) -> Result<Vec<TcpStream>> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let some: Vec<_> = (all.len()..count.min(all.len() + 32))
            .map(|_| tokio::spawn(dial(door)))
            .collect();
        for one in some {
            all.push(one.await??);
        }
    }
    Ok(all)
}

/// Asks and waits for the answer until told to stop. Says when each was asked and how long it took.
async fn ask(mut stream: TcpStream, mut over: watch::Receiver<bool>, said: mpsc::UnboundedSender<(Instant, Duration)>) {
    let (sent, mut got) = ([7; 64], [0; 64]);
    loop {
        let began = Instant::now();
        let both = async {
            stream.write_all(&sent).await?;
            stream.read_exact(&mut got).await
        };
        tokio::select! {
            done = both => if done.is_err() { return },
            _ = over.changed() => return,
        }
        let _ = said.send((began, began.elapsed()));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// p50, p99 and the longest, ms.
fn of(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    [at(0.5), at(0.99), at(1.0)]
}

/// One round: latencies before and after the close.
fn round(program: &str, idle: usize, kept: usize) -> Result<[[f64; 3]; 2]> {
    let folder = tempfile::tempdir()?;
    let (measuring, idling, answering) = (thread()?, thread()?, thread()?);
    let (near, far) = (
        answering.block_on(TcpListener::bind("127.0.0.1:0"))?,
        idling.block_on(TcpListener::bind("127.0.0.1:0"))?,
    );
    let doors = write(folder.path(), [near.local_addr()?.port(), far.local_addr()?.port()])?;
    answering.spawn(echo(near));
    idling.spawn(echo(far));
    let _server = run(program, &folder.path().join("server.json"))?;
    let _client = run(program, &folder.path().join("client.json"))?;
    let asking = measuring.block_on(dial_all(doors[0], kept))?;
    let waiting = idling.block_on(dial_all(doors[1], idle))?;
    std::thread::sleep(Duration::from_millis(500));
    let (stop, over) = watch::channel(false);
    let (said, mut heard) = mpsc::unbounded_channel();
    for stream in asking {
        measuring.spawn(ask(stream, over.clone(), said.clone()));
    }
    drop(said);
    std::thread::sleep(2 * WINDOW);
    let closed = Instant::now();
    drop(waiting);
    std::thread::sleep(3 * WINDOW);
    let _ = stop.send(true);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    while let Some((began, took)) = heard.blocking_recv() {
        if began + took < closed && began + WINDOW > closed {
            before.push(took);
        } else if began + took >= closed && began < closed + WINDOW {
            after.push(took);
        }
    }
    for runtime in [measuring, idling, answering] {
        runtime.shutdown_background();
    }
    Ok([of(before), of(after)])
}

fn measure(rounds: usize, idle: usize, kept: usize, programs: &[String]) -> Result<()> {
    let mut p99 = vec![Vec::new(); programs.len()];
    println!("| program | before: p50 | p99 | longest | after: p50 | p99 | longest (ms) |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for _ in 0..rounds {
        for (program, p99) in programs.iter().zip(&mut p99) {
            let [before, after] = round(program, idle, kept)?;
            let row: Vec<String> = before.iter().chain(&after).map(|ms| format!("{ms:.1}")).collect();
            println!("| {program} | {} |", row.join(" | "));
            p99.push(after[1]);
        }
    }
    for (program, p99) in programs.iter().zip(&mut p99) {
        p99.sort_by(f64::total_cmp);
        println!("{program}: median p99 after the close {:.1} ms", p99[p99.len() / 2]);
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = args.iter().take(3).map_while(|word| word.parse().ok()).collect();
    let &[rounds, idle, kept] = numbers.as_slice() else {
        eprintln!("usage: closing ROUNDS IDLE KEPT PROGRAM...");
        return ExitCode::from(2);
    };
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() || rounds == 0 {
        eprintln!("usage: closing ROUNDS IDLE KEPT PROGRAM...");
        return ExitCode::from(2);
    }
    match measure(rounds, idle, kept, &args[3..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("closing: {error}");
            ExitCode::from(1)
        }
    }
}
