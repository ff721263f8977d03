//! How fast a file goes from one process to another over loopback.
//!
//! ```text
//! cargo run --release -p sealway-drop-transfer --example transfer_speed [MIB [ROUNDS [CASE…]]]
//! ```
//!
//! A case is `SUITE,HASH,CONNECTIONS`, such as `aes-256-gcm,sample,2`; hashed is `off`, a `sample` or `all`. Cases alternate within each round. Files are in `/dev/shm` or
//! in `$SPEED_DIR`. Prints the median of GB/s and of CPU seconds per GB of both processes.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sealway_aead::Suite;
use sealway_aead::choose::Offer;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Identity, Place, Setup, connect};
use sealway_drop::names::RelPath;
use sealway_drop_transfer::dest::{self, Answer, Existing};
use sealway_drop_transfer::hashing::Hashing;
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{self, Consent, Offered, receive};
use sealway_drop_transfer::send::{self, send};
use sealway_drop_transfer::source::{ScanOptions, scan};
use zeroize::Zeroizing;

struct Yes;

impl Consent for Yes {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        Ok(())
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        Answer::Overwrite
    }
}

struct Case {
    suite: Suite,
    hashing: Hashing,
    connections: u32,
}

impl Case {
    fn parse(text: &str) -> Case {
        let words: Vec<&str> = text.split(',').collect();
        let [suite, hash, connections] = words.as_slice() else {
            panic!("a case is SUITE,HASH,CONNECTIONS")
        };
        Case {
            suite: suite.parse().unwrap(),
            hashing: match *hash {
                "off" => Hashing::Off,
                "sample" => Hashing::Sampled,
                "all" => Hashing::All,
                other => panic!("{other}: off, sample or all"),
            },
            connections: connections.parse().unwrap(),
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            identity: Identity::Keys {
                own: Zeroizing::new([1; 32]),
                peers: None,
            },
            offer: Offer::new(&[self.suite], true).unwrap(),
            strong: false,
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("receive-end") => receive_end(&Case::parse(&args[1]), args[2].clone().into()),
        Some("send-end") => send_end(&Case::parse(&args[1]), &args[2], args[3].clone().into()),
        _ => measure(&args),
    }
}

fn receive_end(case: &Case, output: PathBuf) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (progress, cancel) = (Progress::new(), Cancel::new());
    let options = receive::Options {
        output,
        dest: dest::Options::default(),
        hashing: case.hashing,
        direct: None,
    };
    let connected = connect(Place::Listen(listener), &case.setup(), case.connections, &cancel).unwrap();
    receive(&options, connected, &progress, &cancel, &Yes).unwrap();
    println!("{}", cpu_seconds());
}

fn send_end(case: &Case, to: &str, path: PathBuf) {
    let (progress, cancel) = (Progress::new(), Cancel::new());
    let paths = vec![path];
    let scan = scan(&paths, ScanOptions::default(), &mut |_| {}).unwrap();
    let options = send::Options {
        paths,
        hashing: case.hashing,
        direct: None,
        transfer_secret: Zeroizing::new([1; 32]),
    };
    let connected = connect(
        Place::Dial {
            addresses: vec![to.parse().unwrap()],
            patience: Duration::from_secs(10),
        },
        &case.setup(),
        case.connections,
        &cancel,
    )
    .unwrap();
    let summary = send(&options, &scan, connected, &progress, &cancel).unwrap();
    println!("{} {}", cpu_seconds(), summary.epochs);
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn measure(args: &[String]) {
    let mib: u64 = args.first().map_or(1024, |mib| mib.parse().unwrap());
    let rounds: usize = args.get(1).map_or(5, |rounds| rounds.parse().unwrap());
    let default = [
        "aes-256-gcm,off,1",
        "aes-256-gcm,off,2",
        "aes-256-gcm,sample,2",
        "aes-256-gcm,all,2",
        "chacha20-poly1305,off,2",
    ]
    .map(String::from);
    let cases = if args.len() > 2 { &args[2..] } else { &default[..] };
    let dir = PathBuf::from(std::env::var("SPEED_DIR").unwrap_or_else(|_| "/dev/shm".into()))
        .join(format!("transfer-speed-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("out")).unwrap();
    let file = dir.join("content");
    let mut content = blake3::Hasher::new().finalize_xof();
    let (mut out, mut block) = (std::fs::File::create(&file).unwrap(), vec![0; 1 << 20]);
    for _ in 0..mib {
        content.fill(&mut block);
        out.write_all(&block).unwrap();
    }
    let mut figures = vec![Vec::new(); cases.len()];
    for _ in 0..rounds {
        for (case, figures) in cases.iter().zip(&mut figures) {
            let run = |words: &[&str]| {
                Command::new(std::env::current_exe().unwrap())
                    .args(words)
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            let mut receiver = run(&["receive-end", case, dir.join("out").to_str().unwrap()]);
            let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
            let address = lines.next().unwrap().unwrap();
            let begun = Instant::now();
            let sender = run(&["send-end", case, &address, file.to_str().unwrap()]);
            let told = sender.wait_with_output().unwrap();
            let received: f64 = lines.next().unwrap().unwrap().parse().unwrap();
            assert!(receiver.wait().unwrap().success() && told.status.success());
            let seconds = begun.elapsed().as_secs_f64();
            let gb = (mib << 20) as f64 / 1e9;
            let told = String::from_utf8(told.stdout).unwrap();
            let sent: f64 = told.split_whitespace().next().unwrap().parse().unwrap();
            figures.push([gb / seconds, sent / gb, received / gb]);
            std::fs::remove_file(dir.join("out/content")).unwrap();
        }
    }
    for (case, figures) in cases.iter().zip(&figures) {
        let median = |i: usize| {
            let mut values: Vec<f64> = figures.iter().map(|row| row[i]).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let (rate, low, high) = median(0);
        println!(
            "{case:30} {rate:.2} GB/s ({low:.2} to {high:.2}); CPU s/GB: sender {:.2}, receiver {:.2}",
            median(1).0,
            median(2).0
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
