//! Programs of V2Ray's kind, right and wrong, to see that the lab notices: this test program again, behind a script that has
//! the words of one. Between client and server is the target's address, and then bytes as they are.

#![allow(clippy::unwrap_used)]

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::peer::tests::script;

/// The variables in which the program that is started again finds its configuration and what it is to do wrong.
const CONFIG: &str = "SEALWAY_TEST_FAKE_CONFIG";
const FAULT: &str = "SEALWAY_TEST_FAKE_FAULT";

/// Bytes of a connection that come down right.
const RIGHT: usize = 100;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Its client goes straight to the target.
    Bypass,
    /// It flips a bit of each piece that comes down.
    Flips,
    /// It closes after a few bytes that come down.
    Short,
    /// It ends at its first connection.
    Ends,
}

/// A script that says this of its version and is client and server with this fault.
pub(crate) fn program(folder: &Path, version: &str, fault: Fault) -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let run = format!(
        "{CONFIG}=\"$3\" {FAULT}={fault:?} exec '{}' --exact --nocapture route::fakes::a_fake_runs_its_configuration",
        me.display()
    );
    let body = format!("case $1 in\nversion) echo '{version}' ;;\nrun) {run} ;;\n*) exit 2 ;;\nesac");
    script(folder, "fake", &body)
}

/// The program behind the script; in a run of the tests there is nothing to do.
#[test]
fn a_fake_runs_its_configuration() {
    let (Ok(config), Ok(fault)) = (std::env::var(CONFIG), std::env::var(FAULT)) else {
        return;
    };
    let config: Value = serde_json::from_str(&std::fs::read_to_string(config).unwrap()).unwrap();
    let inbound = &config["inbounds"][0];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port_of(inbound))).unwrap();
    let is_client = inbound["protocol"] == "dokodemo-door";
    for near in listener.incoming().flatten() {
        if fault == "Ends" {
            std::process::exit(3);
        }
        let (config, fault) = (config.clone(), fault.clone());
        std::thread::spawn(move || {
            let far = if is_client { ask(&config, &fault) } else { obey(&near) };
            // Whoever is not there any more has asked for nothing.
            if let Ok(far) = far {
                let fault = if is_client { fault } else { String::new() };
                relay(&near, &far, &fault);
            }
        });
    }
}

fn port_of(place: &Value) -> u16 {
    u16::try_from(place["port"].as_u64().unwrap()).unwrap()
}

/// The client's way to the target, by way of the server or not.
fn ask(config: &Value, fault: &str) -> io::Result<TcpStream> {
    let target = port_of(&config["inbounds"][0]["settings"]);
    if fault == "Bypass" {
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

fn relay(near: &TcpStream, far: &TcpStream, fault: &str) {
    for socket in [near, far] {
        socket.set_nodelay(true).unwrap();
    }
    let (up, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || copy(&up, &to, ""));
    copy(far, near, fault);
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, fault: &str) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut piece = &mut buffer[..n];
        match fault {
            "Flips" => piece[n / 2] ^= 1,
            "Short" => piece = &mut piece[..n.min(RIGHT)],
            _ => {}
        }
        if to.write_all(piece).is_err() {
            break;
        }
        if fault == "Short" {
            let _ = to.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
