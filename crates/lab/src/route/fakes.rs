//! Programs of V2Ray's kind that do it wrong, to see that the lab notices: this test program again, behind a script that has
//! the words of one.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::peer::tests::script;

/// The variables in which the program that is started again finds its configuration and what it is to do wrong.
const CONFIG: &str = "SEALWAY_TEST_FAKE_CONFIG";
const FAULT: &str = "SEALWAY_TEST_FAKE_FAULT";

/// Bytes of a connection that are right.
const RIGHT: usize = 100_000;

/// What is wrong with it, besides that its client goes straight to the target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// It flips a bit of each piece that comes down, after the first.
    Flips,
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
    let port = u16::try_from(inbound["port"].as_u64().unwrap()).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    // A server is never asked.
    for near in listener.incoming().flatten() {
        if fault == "Ends" {
            std::process::exit(3);
        }
        let settings = &inbound["settings"];
        let target = u16::try_from(settings["port"].as_u64().unwrap()).unwrap();
        let far = TcpStream::connect((settings["address"].as_str().unwrap(), target)).unwrap();
        let flips = fault == "Flips";
        let (up, down) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || copy(up, far, false));
        std::thread::spawn(move || copy(down, near, flips));
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, flips: bool) {
    let mut buffer = vec![0; 64 * 1024];
    let mut passed = 0;
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        passed += n;
        if flips && passed > RIGHT {
            buffer[n / 2] ^= 1;
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
