//! Programs of V2Ray's kind, right and wrong, to see that the lab notices: this test program again, behind a script that has
//! the words of one. Between client and server is the target's address, and then bytes as they are.

#![allow(clippy::unwrap_used)]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::peer::tests::script;

/// The variables in which the program that is started again finds its configuration, what it is to do wrong, and the file that
/// has to be there before it does.
const CONFIG: &str = "SEALWAY_TEST_FAKE_CONFIG";
const FAULT: &str = "SEALWAY_TEST_FAKE_FAULT";
const TURNED: &str = "SEALWAY_TEST_FAKE_TURNED";

/// The name of that file.
const TURN: &str = "turn";

/// Bytes of a connection that come down right.
const RIGHT: usize = 100;

/// Pieces of one direction that go right before a fault that comes once: more than a few exchanges have, and fewer than all those
/// that are checked before the first window.
const LATE: usize = 20;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Its client goes straight to the target.
    Bypass,
    /// It flips a bit of each piece that comes down.
    Flips,
    /// It flips one bit that comes down, once.
    OneBitDown,
    /// It flips one bit that goes up, once.
    OneBitUp,
    /// It closes after a few bytes that come down.
    Short,
    /// It ends at its first connection.
    Ends,
    /// Its client ends in the midst of what comes down.
    EndsLate,
}

/// A script that says this of its version and is client and server with this fault.
pub(crate) fn program(folder: &Path, version: &str, fault: Fault) -> PathBuf {
    turn(folder);
    turncoat(folder, version, fault)
}

/// The same without any fault before [`turn`] is called for its folder.
pub(crate) fn turncoat(folder: &Path, version: &str, fault: Fault) -> PathBuf {
    let (me, turned) = (std::env::current_exe().unwrap(), folder.join(TURN));
    let run = format!(
        "{CONFIG}=\"$3\" {FAULT}={fault:?} {TURNED}='{}' exec '{}' --exact --nocapture route::fakes::a_fake_runs_its_configuration",
        turned.display(),
        me.display()
    );
    let body = format!("case $1 in\nversion) echo '{version}' ;;\nrun) {run} ;;\n*) exit 2 ;;\nesac");
    script(folder, "fake", &body)
}

/// From now on the program in this folder does what it does wrong.
pub(crate) fn turn(folder: &Path) {
    std::fs::write(folder.join(TURN), "").unwrap();
}

/// What the program is to do wrong, as it is told.
struct Told {
    fault: String,
    turned: PathBuf,
    /// Pieces since then in the direction of a fault that comes once.
    pieces: AtomicUsize,
}

impl Told {
    /// Whether it does this, now.
    fn does(&self, fault: Fault) -> bool {
        self.fault == format!("{fault:?}") && self.turned.exists()
    }

    /// The same of a fault that comes once, for each piece of its direction.
    fn does_now(&self, fault: Fault) -> bool {
        self.does(fault) && self.pieces.fetch_add(1, Ordering::Relaxed) == LATE
    }
}

/// The way of bytes through a client.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Way {
    Up,
    Down,
}

/// The program behind the script; in a run of the tests there is nothing to do.
#[test]
fn a_fake_runs_its_configuration() {
    let [Some(config), Some(fault), Some(turned)] = [CONFIG, FAULT, TURNED].map(std::env::var_os) else {
        return;
    };
    let config: Value = serde_json::from_str(&std::fs::read_to_string(config).unwrap()).unwrap();
    let told = Arc::new(Told {
        fault: fault.into_string().unwrap(),
        turned: turned.into(),
        pieces: AtomicUsize::new(0),
    });
    let inbound = &config["inbounds"][0];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port_of(inbound))).unwrap();
    let is_client = inbound["protocol"] == "dokodemo-door";
    for near in listener.incoming().flatten() {
        if told.does(Fault::Ends) {
            std::process::exit(3);
        }
        let (config, told) = (config.clone(), is_client.then(|| Arc::clone(&told)));
        std::thread::spawn(move || {
            let far = match &told {
                Some(told) => ask(&config, told),
                None => obey(&near),
            };
            // Whoever is not there any more has asked for nothing.
            if let Ok(far) = far {
                relay(&near, &far, told);
            }
        });
    }
}

fn port_of(place: &Value) -> u16 {
    u16::try_from(place["port"].as_u64().unwrap()).unwrap()
}

/// The client's way to the target, by way of the server or not.
fn ask(config: &Value, told: &Told) -> io::Result<TcpStream> {
    let target = port_of(&config["inbounds"][0]["settings"]);
    if told.does(Fault::Bypass) {
        return TcpStream::connect((Ipv4Addr::LOCALHOST, target));
    }
    let server = port_of(&config["outbounds"][0]["settings"]["vnext"][0]);
    let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    far.write_all(&target.to_be_bytes())?;
    Ok(far)
}

/// The server's way to the target.
fn obey(mut near: &TcpStream) -> io::Result<TcpStream> {
    let mut target = [0; 2];
    near.read_exact(&mut target)?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, u16::from_be_bytes(target)))
}

fn relay(near: &TcpStream, far: &TcpStream, told: Option<Arc<Told>>) {
    for socket in [near, far] {
        socket.set_nodelay(true).unwrap();
    }
    let (up, to, up_told) = (near.try_clone().unwrap(), far.try_clone().unwrap(), told.clone());
    std::thread::spawn(move || copy(&up, &to, Way::Up, up_told.as_deref()));
    copy(far, near, Way::Down, told.as_deref());
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, way: Way, told: Option<&Told>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut piece = &mut buffer[..n];
        let mut is_last = false;
        match (told, way) {
            (Some(told), Way::Up) if told.does_now(Fault::OneBitUp) => piece[n / 2] ^= 1,
            (Some(told), Way::Down) if told.does(Fault::Flips) || told.does_now(Fault::OneBitDown) => piece[n / 2] ^= 1,
            (Some(told), Way::Down) if told.does(Fault::Short) => {
                piece = &mut piece[..n.min(RIGHT)];
                is_last = true;
            }
            (Some(told), Way::Down) if told.does_now(Fault::EndsLate) => std::process::exit(3),
            _ => {}
        }
        if to.write_all(piece).is_err() {
            break;
        }
        if is_last {
            let _ = to.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
