//! Many nodes: what ends one of them and waits for it, what stands in front of them, and what starts them.

mod drain;
mod haproxy;
mod packaging;
mod yaml;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::common::proxy::{Running, free_ports};
use crate::common::{Ran, ran, sealway};

/// A node with this configuration, and with more words.
fn start(folder: &Path, name: &str, config: &str, more: &[&str]) -> Running {
    let file = folder.join(name);
    fs::write(&file, config).unwrap();
    Running::start_with(&file, more)
}

/// The number of its process.
fn pid(node: &Running) -> String {
    node.program.id().to_string()
}

/// `sealway drain` with these words.
fn drain(words: &[&str]) -> Ran {
    ran(sealway(&["drain"]).args(words))
}

/// Status and content of what is at a path of a server of HTTP.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.get(9..12)?.parse().ok()?, body.to_owned()))
}
