//! What a mux costs: streams and datagrams through two hops of each program that is named, one after the other in each round.
//!
//! `mux [ROUNDS] PROGRAM...`, where a program is one that takes `-config FILE` or, if its name ends in `serve`, `FILE`.
//!
//! Both hops run VLESS without TLS on loopback. CPU is that of both processes, user and system. Answers:
//!
//! - `up`, `down`: eight streams in one carrier, CPU seconds per GB and Gbit/s;
//! - `alone`, `beside`: the 99th percentile of 1 KiB requests of seven sessions, without and with a bulk stream in their carrier;
//! - `udp`: echoes of 1,200 bytes, 64 under way at once, per second and per CPU second, and the share that is lost at half
//!   that rate, but for those that the sockets of this program had no room for.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
/// Bytes of each of the eight streams.
const EACH: u64 = 256 << 20;
/// Bytes of a request and of its answer.
const REQUEST: usize = 1024;
/// Bytes of a datagram.
const DATAGRAM: usize = 1200;
/// Datagrams under way at once.
const WINDOW: usize = 64;
/// Datagrams that are sent at once, at half the rate.
const BURST: u64 = 16;
/// How long requests and datagrams go on.
const TIME: Duration = Duration::from_secs(3);

/// Takes bytes (`S` and how many), gives them (`G` and how many), or answers requests (`E`).
fn target() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    Ok(at)
}

fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let mut left = u64::from_be_bytes(head[1..].try_into()?);
    let mut buffer = vec![7; 256 << 10];
    match head[0] {
        b'S' => {
            while left > 0 {
                let got = stream.read(&mut buffer)?;
                if got == 0 {
                    return Ok(());
                }
                left -= got as u64;
            }
            stream.write_all(b"!")?;
        }
        b'G' => {
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left)?);
                left -= stream.write(&buffer[..most])? as u64;
            }
        }
        _ => loop {
            stream.read_exact(&mut buffer[..REQUEST])?;
            stream.write_all(&buffer[..REQUEST])?;
        },
    }
    Ok(())
}

fn udp_target() -> Result<SocketAddr> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    SockRef::from(&socket).set_recv_buffer_size(4 << 20)?;
    let at = socket.local_addr()?;
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    Ok(at)
}

fn open(door: SocketAddr, what: u8, bytes: u64) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(door)?;
    stream.set_nodelay(true)?;
    let mut head = vec![what];
    head.extend_from_slice(&bytes.to_be_bytes());
    stream.write_all(&head)?;
    Ok(stream)
}

/// Both hops of one program.
struct Hops {
    children: Vec<Child>,
    tcp: SocketAddr,
    udp: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Hops {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Hops {
    fn start(program: &str, target: SocketAddr, udp_target: SocketAddr) -> Result<Hops> {
        let folder = tempfile::tempdir()?;
        let held: Vec<TcpListener> = (0..3)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<std::io::Result<_>>()?;
        let ports: Vec<u16> = held
            .iter()
            .map(|listener| Ok(listener.local_addr()?.port()))
            .collect::<Result<_>>()?;
        drop(held);
        let door = |network: &str, port: u16, to: SocketAddr| {
            format!(
                r#"{{"listen":"127.0.0.1","port":{port},"protocol":"dokodemo-door","settings":{{"network":"{network}","address":"127.0.0.1","port":{}}}}}"#,
                to.port()
            )
        };
        let server = format!(
            r#"{{"log":{{"loglevel":"error","access":"none"}},"inbounds":[{{"listen":"127.0.0.1","port":{},"protocol":"vless","settings":{{"decryption":"none","clients":[{{"id":"{ID}"}}]}}}}],"outbounds":[{{"protocol":"freedom","settings":{{"finalRules":[{{"action":"allow"}}]}}}}]}}"#,
            ports[0]
        );
        // Datagrams have a carrier of their own (XUDP), as without any key; streams share carriers.
        let client = format!(
            r#"{{"log":{{"loglevel":"error","access":"none"}},"inbounds":[{},{}],"outbounds":[{{"protocol":"vless","mux":{{"enabled":true,"concurrency":8,"xudpConcurrency":-1}},"settings":{{"vnext":[{{"address":"127.0.0.1","port":{},"users":[{{"id":"{ID}","encryption":"none"}}]}}]}}}}]}}"#,
            door("tcp", ports[1], target),
            door("udp", ports[2], udp_target),
            ports[0]
        );
        let mut children = Vec::new();
        for (name, text) in [("server.json", server), ("client.json", client)] {
            let file = folder.path().join(name);
            std::fs::write(&file, text)?;
            let mut command = Command::new(program);
            if !program.ends_with("serve") {
                command.arg("-config");
            }
            children.push(command.arg(&file).stdout(Stdio::null()).spawn()?);
        }
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for port in &ports[..2] {
            while TcpStream::connect(at(*port)).is_err() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        thread::sleep(Duration::from_millis(300));
        Ok(Hops {
            children,
            tcp: at(ports[1]),
            udp: at(ports[2]),
            _folder: folder,
        })
    }

    /// CPU seconds so far.
    fn cpu(&self) -> Result<f64> {
        let mut ticks = 0;
        for child in &self.children {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
            let fields = stat.rsplit(") ").next().ok_or("stat")?.split(' ');
            ticks += fields
                .skip(11)
                .take(2)
                .filter_map(|field| field.parse::<u64>().ok())
                .sum::<u64>();
        }
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

/// Eight streams: CPU seconds per GB, and Gbit/s.
fn bulk(hops: &Hops, what: u8) -> Result<(f64, f64)> {
    let (cpu, began) = (hops.cpu()?, Instant::now());
    let all: Vec<_> = (0..8)
        .map(|_| {
            let door = hops.tcp;
            thread::spawn(move || -> Result<()> {
                let mut stream = open(door, what, EACH)?;
                let mut buffer = vec![7; 256 << 10];
                let mut left = EACH;
                while left > 0 {
                    left -= match what {
                        b'S' => stream.write(&buffer[..(256 << 10).min(left as usize)])?,
                        _ => match stream.read(&mut buffer)? {
                            0 => return Err("cut off".into()),
                            got => got,
                        },
                    } as u64;
                }
                if what == b'S' {
                    stream.read_exact(&mut buffer[..1])?;
                }
                Ok(())
            })
        })
        .collect();
    for one in all {
        one.join().map_err(|_| "a stream")??;
    }
    let gb = 8.0 * EACH as f64 / 1e9;
    Ok(((hops.cpu()? - cpu) / gb, gb * 8.0 / began.elapsed().as_secs_f64()))
}

/// Requests of seven sessions, perhaps beside a bulk stream: the 99th percentile, microseconds.
fn requests(hops: &Hops, beside: Option<u8>) -> Result<f64> {
    let stop = Arc::<AtomicBool>::default();
    let mut sessions = (0..7).map(|_| open(hops.tcp, b'E', 0)).collect::<Result<Vec<_>>>()?;
    if let Some(what) = beside {
        let stream = open(hops.tcp, what, u64::MAX)?;
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            let (mut stream, mut buffer) = (stream, vec![7; 256 << 10]);
            while !stop.load(Ordering::Relaxed) {
                let moved = match what {
                    b'S' => stream.write(&buffer),
                    _ => stream.read(&mut buffer),
                };
                if moved.is_err() {
                    return;
                }
            }
        });
        thread::sleep(Duration::from_millis(300));
    }
    let all: Vec<_> = sessions
        .drain(..)
        .map(|mut stream| {
            thread::spawn(move || -> Result<Vec<f64>> {
                let (began, mut took) = (Instant::now(), Vec::new());
                let mut buffer = [1; REQUEST];
                while began.elapsed() < TIME {
                    let one = Instant::now();
                    stream.write_all(&buffer)?;
                    stream.read_exact(&mut buffer)?;
                    took.push(one.elapsed().as_secs_f64() * 1e6);
                }
                Ok(took)
            })
        })
        .collect();
    let mut took = Vec::new();
    for one in all {
        took.extend(one.join().map_err(|_| "a session")??);
    }
    stop.store(true, Ordering::Relaxed);
    took.sort_by(f64::total_cmp);
    Ok(took[took.len() * 99 / 100])
}

/// Datagrams that the sockets at these ports, which are the load's own, had no room for.
fn dropped(ports: [u16; 2]) -> Result<u64> {
    let sockets = std::fs::read_to_string("/proc/net/udp")?;
    let of_ports = sockets.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let port = fields.nth(1)?.rsplit(':').next()?;
        let known = ports.contains(&u16::from_str_radix(port, 16).ok()?);
        known.then(|| fields.last()?.parse::<u64>().ok())?
    });
    Ok(of_ports.sum())
}

/// Echoes: per second, per CPU second, and the share that is lost at half the rate.
fn datagrams(hops: &Hops, target: SocketAddr) -> Result<(f64, f64, f64)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    SockRef::from(&socket).set_recv_buffer_size(4 << 20)?;
    let own = [socket.local_addr()?.port(), target.port()];
    socket.connect(hops.udp)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut buffer = [0; 2048];
    let mut under_way = 0;
    let (mut cpu, mut began, mut count) = (hops.cpu()?, Instant::now(), 0_u64);
    let mut warm = true;
    while began.elapsed() < TIME {
        while under_way < WINDOW {
            socket.send(&[5; DATAGRAM])?;
            under_way += 1;
        }
        match socket.recv(&mut buffer) {
            Ok(_) => {
                under_way -= 1;
                count += 1;
            }
            Err(_) => under_way = 0,
        }
        if warm && began.elapsed() > Duration::from_millis(500) {
            (cpu, began, count, warm) = (hops.cpu()?, Instant::now(), 0, false);
        }
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    let per_core = count as f64 / (hops.cpu()? - cpu);
    thread::sleep(Duration::from_millis(300));
    while socket.recv(&mut buffer).is_ok() {}
    let before = dropped(own)?;
    // Half the rate, a few at a time, whatever comes back.
    let receiver = socket.try_clone()?;
    let receiving = thread::spawn(move || {
        let (mut buffer, mut got) = ([0; 2048], 0_u64);
        let mut quiet = 0;
        while quiet < 8 {
            match receiver.recv(&mut buffer) {
                Ok(_) => (got, quiet) = (got + 1, 0),
                Err(_) => quiet += 1,
            }
        }
        got
    });
    let (began, mut sent, mut behind) = (Instant::now(), 0_u64, 0_u64);
    while began.elapsed() < TIME {
        // After a pause of the machine's not all at once: that would be another rate.
        let due = (began.elapsed().as_secs_f64() * rate / 2.0) as u64;
        behind = behind.max(due.saturating_sub(sent + behind).saturating_sub(BURST) + behind);
        while sent + behind < due {
            socket.send(&[5; DATAGRAM])?;
            sent += 1;
        }
        thread::sleep(Duration::from_micros(200));
    }
    let got = receiving.join().map_err(|_| "the receiver")?;
    let lost = sent.saturating_sub(got + dropped(own)? - before);
    Ok((rate, per_core, lost as f64 / sent as f64))
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = match arguments.first().map(|first| first.parse::<usize>()) {
        Some(Ok(rounds)) => {
            arguments.remove(0);
            rounds
        }
        _ => 3,
    };
    let (target, udp_target) = (target()?, udp_target()?);
    let mut all: BTreeMap<(&str, String), Vec<f64>> = BTreeMap::new();
    for round in 0..rounds {
        for program in &arguments {
            let mut note = |what, value: f64| {
                println!("{round} {program} {what} {value:.4}");
                all.entry((what, program.clone())).or_default().push(value);
            };
            let hops = Hops::start(program, target, udp_target)?;
            for (what, cpu, speed) in [
                (b'S', "up, CPU s/GB", "up, Gbit/s"),
                (b'G', "down, CPU s/GB", "down, Gbit/s"),
            ] {
                let measured = bulk(&hops, what)?;
                note(cpu, measured.0);
                note(speed, measured.1);
            }
            drop(hops);
            for (beside, what) in [
                (None, "p99 alone, µs"),
                (Some(b'S'), "p99 beside an upload, µs"),
                (Some(b'G'), "p99 beside a download, µs"),
            ] {
                // Each with a carrier of its own.
                let hops = Hops::start(program, target, udp_target)?;
                note(what, requests(&hops, beside)?);
            }
            let hops = Hops::start(program, target, udp_target)?;
            let (rate, per_core, lost) = datagrams(&hops, udp_target)?;
            note("UDP, echoes/s", rate);
            note("UDP, echoes per CPU s", per_core);
            note("UDP, lost at half the rate", lost);
        }
    }
    println!("\nmedians");
    for ((what, program), mut values) in all {
        values.sort_by(f64::total_cmp);
        println!("{what:30} {program:40} {:.4}", values[values.len() / 2]);
    }
    Ok(())
}
