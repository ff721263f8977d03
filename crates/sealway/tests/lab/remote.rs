//! The lab on two hosts, both of them this one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ran, run, sealway};

/// Long enough for anything here on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

/// `sealway lab respond`.
struct Responder {
    child: Child,
    address: String,
    token: String,
}

impl Responder {
    fn start() -> Responder {
        let mut child = sealway(&["lab", "respond", "--listen", "127.0.0.1:0"])
            .env_remove("SEALWAY_LAB_TOKEN")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut word = |name: &str| lines.next().unwrap().unwrap().strip_prefix(name).unwrap().to_owned();
        let (address, token) = (word("listening "), word("token "));
        Responder { child, address, token }
    }

    /// A client of it.
    fn client(&self, token: &str, more: &[&str]) -> Command {
        let mut words = vec!["lab", "transports", "--remote", &self.address, "--no-progress"];
        words.extend(more);
        let mut command = sealway(&words);
        command.env("SEALWAY_LAB_TOKEN", token);
        command
    }

    /// Servers that it has started.
    fn servers(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let children: String = tasks.map(|task| children(task.unwrap())).collect();
        let is_server = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("\0run\0"))
        };
        children.split_whitespace().filter(is_server).count()
    }

    fn wait(&self, what: &str, done: impl Fn(&Responder) -> bool) {
        let from = Instant::now();
        while !done(self) {
            assert!(from.elapsed() < AMPLE, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn both_hosts_are_in_the_result() {
    let responder = Responder::start();
    let more = ["--stack", "vless-tcp-tls", "--quick", "--budget", "10s", "--json", "-"];
    let ran: Ran = responder.client(&responder.token, &more).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let other = &result["responder"];
    assert_eq!(other["sealway"], result["sealway"]);
    assert_eq!(other["machine"]["key"], result["machine"]["key"]);
    assert!(other["rtt_s"].as_f64().unwrap() > 0.0);
    let rows = result["results"].as_array().unwrap();
    let median = |subject: &str, metric: &str| {
        let row = rows
            .iter()
            .find(|row| row["subject"] == subject && row["metric"] == metric);
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
    assert!(
        words.join(" ").contains("on two hosts") && ran.stderr.contains("Servers  "),
        "{}",
        ran.stderr
    );
}

#[test]
fn servers_end_with_the_client_that_is_gone() {
    let responder = Responder::start();
    let mut client = responder
        .client(&responder.token, &["--stack", "vless-tcp", "--full"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    responder.wait("no server was started", |responder| responder.servers() == 1);
    client.kill().unwrap();
    client.wait().unwrap();
    responder.wait("its server goes on", |responder| responder.servers() == 0);
    // The next one is served.
    let more = ["--stack", "direct", "--quick", "--budget", "5s"];
    let served = || Ran::from(responder.client(&responder.token, &more).output().unwrap());
    responder.wait("nobody is served any more", |_| served().code == 0);
}

#[test]
fn who_has_another_token_is_refused() {
    let responder = Responder::start();
    let wrong = "0123456789abcdef0123456789abcdef";
    let ran: Ran = responder.client(wrong, &["--quick"]).output().unwrap().into();
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.stderr.contains("refused") && !ran.stderr.contains(wrong), "{ran:?}");
    assert_eq!(responder.servers(), 0);
}

#[test]
fn what_needs_one_host_is_refused() {
    // Nobody is asked for it: nobody would answer here.
    let nobody = "127.0.0.1:1";
    let client = |token: &str, more: &[&str]| -> Ran {
        let mut words = vec!["lab", "transports", "--remote", nobody, "--no-progress"];
        words.extend(more);
        sealway(&words).env("SEALWAY_LAB_TOKEN", token).output().unwrap().into()
    };
    let token = "0123456789abcdef0123456789abcdef";
    for (more, word) in [
        (&["--stack", "front-path"][..], "front-path"),
        (&["--peers", "xray"], "xray"),
        (&["--stack", "vless"], "vless"),
        (&["--gpu"], "--gpu"),
        (&["--peer", "fork=/opt/fork"], "the peer fork"),
        (&["--link", "rate=100mbit"], "an emulated link"),
    ] {
        let ran = client(token, more);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(word), "{ran:?}");
    }
    let ran = run(&["lab", "requests", "--remote", nobody]);
    assert_eq!((ran.code, ran.stderr.contains("transports")), (2, true), "{ran:?}");
    let ran = client("", &[]);
    assert_eq!((ran.code, ran.stderr.contains("--token-file")), (2, true), "{ran:?}");
}
