//! The lab on two hosts, both of them this one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::program::Program;
use crate::common::{ran, run, sealway, until, words};

/// `sealway lab respond`.
struct Responder {
    program: Program,
    address: String,
    token: String,
}

impl Responder {
    fn start() -> Responder {
        let mut command = sealway(&["lab", "respond", "--listen", "127.0.0.1:0"]);
        command.env_remove("SEALWAY_LAB_TOKEN").stdout(Stdio::piped());
        let mut program = Program::start(command.stderr(Stdio::null()));
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut word = |name: &str| lines.next().unwrap().unwrap().strip_prefix(name).unwrap().to_owned();
        let (address, token) = (word("listening "), word("token "));
        Responder {
            program,
            address,
            token,
        }
    }

    /// A client of it.
    fn client(&self, line: &str) -> Command {
        client(&self.address, &self.token, line)
    }

    /// Servers that it has started.
    fn servers(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.program.id())).unwrap();
        let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children: String = tasks.map(|task| children(task.unwrap())).collect();
        let is_server = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("\0run\0"))
        };
        children.split_whitespace().filter(is_server).count()
    }
}

/// A client of whoever responds there.
fn client(address: &str, token: &str, line: &str) -> Command {
    let mut command = sealway(&["lab", "transports", "--remote", address, "--no-progress"]);
    command.args(words(line)).env("SEALWAY_LAB_TOKEN", token);
    command
}

#[test]
fn both_hosts_are_in_the_result() {
    let responder = Responder::start();
    let line = "--stack vless-tcp-tls --quick --budget 10s --json -";
    let ran = ran(&mut responder.client(line));
    ran.says(0, &["Servers  "]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let other = &result["responder"];
    assert_eq!(other["sealway"], result["sealway"]);
    assert_eq!(other["machine"]["key"], result["machine"]["key"]);
    assert!(other["rtt_s"].as_f64().unwrap() > 0.0);
    let rows = result["results"].as_array().unwrap();
    let median = |subject: &str, metric: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row["subject"] == subject && row["metric"] == metric);
        let row = row.unwrap_or_else(|| panic!("no {metric} of {subject}: {:?}", result["warnings"]));
        row["median"].as_f64().unwrap()
    };
    assert!(median("direct", "throughput") > 0.0);
    let of = |metric| median("sealway", metric);
    let [sum, client, server] = ["cpu_per_gb", "cpu_per_gb_client", "cpu_per_gb_server"].map(of);
    assert!(
        client > 0.0 && server > 0.0 && sum > client.max(server),
        "{sum} {client} {server}"
    );
    assert!(of("memory_client") > 0.0 && of("memory_server") > 0.0);
    // Neither says where the other one is.
    assert!(!ran.stdout.contains(&responder.address) && !ran.stdout.contains(&responder.token));
    // Lines are broken where they are full.
    let words: Vec<&str> = ran.stderr.split_whitespace().collect();
    assert!(words.join(" ").contains("on two hosts"), "{}", ran.stderr);
}

#[test]
fn servers_end_with_the_client_that_is_gone() {
    let responder = Responder::start();
    let mut command = responder.client("--stack vless-tcp --full");
    let client = Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    until("no server was started", || responder.servers() == 1);
    drop(client);
    until("its server goes on", || responder.servers() == 0);
    // The next one is served.
    let next = || ran(&mut responder.client("--stack direct --quick --budget 5s"));
    until("nobody is served any more", || next().code == 0);
}

#[test]
fn who_has_another_token_is_refused() {
    let responder = Responder::start();
    let wrong = "0123456789abcdef0123456789abcdef";
    let ran = ran(&mut client(&responder.address, wrong, "--quick"));
    ran.says(7, &["refused"]);
    assert!(!ran.stderr.contains(wrong), "{ran:?}");
    assert_eq!(responder.servers(), 0);
}

#[test]
fn what_needs_one_host_is_refused() {
    // Nobody is asked for it: nobody would answer here.
    let nobody = "127.0.0.1:1";
    let token = "0123456789abcdef0123456789abcdef";
    for (line, word) in [
        ("--stack front-path", "front-path"),
        ("--peers xray", "xray"),
        ("--stack vless", "vless"),
        ("--gpu", "--gpu"),
        ("--peer fork=/opt/fork", "the peer fork"),
        ("--link rate=100mbit", "an emulated link"),
    ] {
        ran(&mut client(nobody, token, line)).says(2, &[word]);
    }
    run(&["lab", "requests", "--remote", nobody]).says(2, &["transports"]);
    ran(&mut client(nobody, "", "--quick")).says(2, &["--token-file"]);
}
