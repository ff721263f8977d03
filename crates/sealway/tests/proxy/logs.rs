//! `sealway run`: what stands in its logs, who can make it write them, and that nothing waits for them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use sealway_v2ray::vmess::{self, CommandKey, Request, RequestRandom, Security, Session};
use sealway_v2ray::{Address, Destination, UserId};

use crate::common::program::Program;
use crate::common::proxy::{Running, echo, free_port};
use crate::common::{PATIENCE, ran, sealway, until};

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";

/// A folder with a configuration and its logs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self, level: &str, rest: &str) -> PathBuf {
        let log = |name: &str| self.path(name).display().to_string();
        let (access, error) = (log("access"), log("error"));
        let text = format!(r#"{{"log": {{"access": "{access}", "error": "{error}", "loglevel": "{level}"}}, {rest}}}"#);
        let path = self.path("config.json");
        fs::write(&path, text).unwrap();
        // It may hold ids: one that others can read is warned about.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn lines(&self, name: &str, with: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines()
            .filter(|line| line.contains(with))
            .map(str::to_owned)
            .collect()
    }

    /// The first line with this in it.
    #[track_caller]
    fn wait(&self, name: &str, with: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.lines(name, with).into_iter().next() {
                return line;
            }
            let all = fs::read_to_string(self.path(name));
            assert!(Instant::now() < until, "no {with:?} in {name}: {all:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A door to a target that answers each byte, and the port of the door.
fn door(port: u16, to: u16, network: &str) -> String {
    format!(
        r#"{{"tag": "door", "listen": "127.0.0.1", "port": {port}, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {to}, "network": "{network}"}}}}"#
    )
}

/// A configuration of one such door.
fn only_door(port: u16, to: u16) -> String {
    let door = door(port, to, "tcp");
    format!(r#""inbounds": [{door}], "outbounds": [{{"protocol": "freedom"}}]"#)
}

fn mkfifo(path: &Path) {
    ran(Command::new("mkfifo").arg(path)).says(0, &[]);
}

/// One byte there and back.
fn round(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

/// A log reader that stopped reading froze all connections, and two SIGTERMs were not heard.
#[test]
fn logs_that_nobody_reads_stop_neither_connections_nor_signals() {
    // Both logs are pipes that somebody holds open; the error log at its most talkative, and on standard output, too.
    for stdout in [false, true] {
        let place = Place::new();
        let (port, to) = (free_port(), echo().port());
        for name in ["access", "error"] {
            mkfifo(&place.path(name));
        }
        let config = place.config("debug", &only_door(port, to));
        let both = fs::read_to_string(&config).unwrap();
        if stdout {
            let to_stdout = |name: &str| format!(r#""{name}": "{}""#, place.path(name).display());
            let text = both
                .replace(&to_stdout("access"), r#""access": """#)
                .replace(&to_stdout("error"), r#""error": """#);
            assert_ne!(text, both);
            fs::write(&config, text).unwrap();
        }
        let reader = |name: &str| {
            let mut options = fs::OpenOptions::new();
            options
                .read(true)
                .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
            options.open(place.path(name)).unwrap()
        };
        let _held = (reader("access"), reader("error"));
        let mut command = sealway(&["run", "-c", config.to_str().unwrap()]);
        let mut program = Program::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        until("it does not listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let mut old = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for _ in 0..1500 {
            round(port);
        }
        old.set_read_timeout(Some(PATIENCE)).unwrap();
        old.write_all(b"y").unwrap();
        old.read_exact(&mut [0]).unwrap();
        drop(old);
        program.signal(Signal::TERM);
        assert_eq!(program.ended().code(), Some(0), "stdout: {stdout}");
    }
}

/// Both signals ended the program at once, without letting connections finish.
#[test]
fn hangup_ends_nothing_and_usr1_opens_the_logs_again() {
    let place = Place::new();
    let (port, to) = (free_port(), echo().port());
    let config = place.config("info", &only_door(port, to));
    let running = Running::start(&config);
    let mut open = TcpStream::connect(("127.0.0.1", port)).unwrap();
    round(port);
    place.wait("access", "accepted");
    for name in ["access", "error"] {
        let mode = fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        fs::rename(place.path(name), place.path(&format!("{name}.1"))).unwrap();
    }
    running.signal(Signal::HUP);
    place.wait("error.1", "[Warning] SIGHUP: the configuration was taken up");
    running.signal(Signal::USR1);
    place.wait("error", "[Info] SIGUSR1: the logs were opened again");
    round(port);
    place.wait("access", "accepted");
    for name in ["access", "error"] {
        let mode = fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // Whoever was connected still is.
    open.write_all(b"z").unwrap();
    open.set_read_timeout(Some(PATIENCE)).unwrap();
    open.read_exact(&mut [0]).unwrap();
    drop(open);
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

/// How many lines a log says there would have been: those that stand there, and those that it says were left out.
fn counted(lines: &[String]) -> u64 {
    let left_out = |line: &String| -> u64 {
        let words: Vec<_> = line.split(['(', ' ']).collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        (0..words.len())
            .filter(|&at| words.get(at + 1) == Some(&"more"))
            .filter_map(number)
            .sum()
    };
    lines.iter().map(|line| 1 + left_out(line)).sum()
}

/// One user turned 0.9 MB of datagrams into 53.7 MB of log.
#[test]
fn refused_datagrams_are_a_line_a_second_and_the_rest_is_counted() {
    let place = Place::new();
    let port = free_port();
    let rest = format!(
        r#""inbounds": [{}], "outbounds": [{{"tag": "direct", "protocol": "freedom",
            "settings": {{"finalRules": [{{"action": "block", "ip": ["127.0.0.0/8"]}}]}}}}]"#,
        door(port, 9, "udp")
    );
    let running = Running::start(&place.config("info", &rest));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let since = Instant::now();
    let sent = 3000;
    for n in 0..sent {
        socket.send_to(b"knock", ("127.0.0.1", port)).unwrap();
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    place.wait("error", "datagram dropped");
    std::thread::sleep(Duration::from_millis(1100));
    socket.send_to(b"knock", ("127.0.0.1", port)).unwrap();
    let lines = || place.lines("error", "datagram dropped");
    until("nothing is counted", || {
        lines().iter().any(|line| line.contains("more like it"))
    });
    let seconds = since.elapsed().as_secs() as usize + 1;
    assert!(lines().len() <= seconds + 1, "{} lines in {seconds} s", lines().len());
    assert!(counted(&lines()) > 100, "{:?}", lines());
    assert_eq!(place.lines("access", "accepted").len(), 1);
    assert_eq!(place.lines("access", "rejected").len(), 0);
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

/// Datagrams that the rules send into a black hole were a line `rejected` each, which a ban by the log takes for an attack.
#[test]
fn blocked_datagrams_are_one_line_a_flow() {
    let place = Place::new();
    let (door_port, socks_port) = (free_port(), free_port());
    let rest = format!(
        r#""inbounds": [{}, {{"tag": "socks", "listen": "127.0.0.1", "port": {socks_port}, "protocol": "socks",
            "settings": {{"udp": true}}}}],
           "outbounds": [{{"tag": "block", "protocol": "blackhole"}}]"#,
        door(door_port, 9, "udp")
    );
    let running = Running::start(&place.config("info", &rest));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut control = TcpStream::connect(("127.0.0.1", socks_port)).unwrap();
    control.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut answer = [0; 12];
    control.read_exact(&mut answer).unwrap();
    let relay = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([answer[10], answer[11]])));
    let to = |port: u8| [&[0, 0, 0, 1, 127, 0, 0, 1, 0, port][..], b"knock"].concat();
    for _ in 0..200 {
        socket.send_to(b"knock", ("127.0.0.1", door_port)).unwrap();
        socket.send_to(&to(7), relay).unwrap();
        socket.send_to(&to(8), relay).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    place.wait("access", "udp:127.0.0.1:8 [socks");
    place.wait("access", "udp:127.0.0.1:9 [door");
    std::thread::sleep(Duration::from_millis(200));
    let lines = place.lines("access", "");
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains(" accepted udp:")), "{lines:#?}");
    assert_eq!(place.lines("error", "blackhole").len(), 3);
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

/// A target that was down was a line `rejected` of whoever asked for it.
#[test]
fn a_target_that_does_not_answer_is_no_refusal_of_the_client() {
    let place = Place::new();
    let (port, dead) = (free_port(), free_port());
    let running = Running::start(&place.config("info", &only_door(port, dead)));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    place.wait("error", &format!(" failed: cannot connect to 127.0.0.1:{dead}"));
    let lines = place.lines("access", "");
    assert!(lines.len() == 1 && lines[0].contains(" accepted tcp:"), "{lines:?}");
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

/// A web server that was not running was not even a line at `debug`.
#[test]
fn a_dead_fallback_is_a_warning_with_target_and_reason() {
    let place = Place::new();
    let (port, dead) = (free_port(), free_port());
    let rest = format!(
        r#""inbounds": [{{"tag": "front", "listen": "127.0.0.1", "port": {port}, "protocol": "vless", "settings":
            {{"clients": [{{"id": "{ID}"}}], "decryption": "none", "fallbacks": [{{"dest": {dead}}}]}}}}],
           "outbounds": [{{"protocol": "freedom"}}]"#
    );
    let running = Running::start(&place.config("warning", &rest));
    let come = || {
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        stranger.shutdown(std::net::Shutdown::Write).unwrap();
        stranger
    };
    let strangers: Vec<_> = (0..60).map(|_| come()).collect();
    for mut stranger in strangers {
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let line = place.wait("error", "fallback");
    let wanted = format!(
        " [Warning] the fallback {dead} cannot be reached, and strangers are shown nothing: cannot connect to "
    );
    assert!(line.contains(&wanted) && line.contains("refused"), "{line}");
    let lines = place.lines("error", "fallback").len();
    assert!(lines < 40, "{lines} lines of 60 strangers");
    // Nothing that a ban by the access log would act on: it is not the visitor's fault.
    assert_eq!(place.lines("access", ""), Vec::<String>::new());
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

/// The header of a VMess request, made at a time, and the chunk that ends its body.
fn vmess_header(to: u16, time: i64) -> Vec<u8> {
    let to = Destination::tcp(Address::parse("127.0.0.1").unwrap(), to);
    let options = Security::Aes128Gcm.usual_options();
    let session = Session::new(&[7; 33], Security::Aes128Gcm, options, to.network).unwrap();
    let request = Request {
        session,
        command: vmess::Command::Connect(to),
    };
    let random = RequestRandom {
        auth: [7; 4],
        nonce: [7; 8],
        padding_len: 0,
        padding: [0; 15],
    };
    let mut out = Vec::new();
    let key = CommandKey::new(&UserId::parse(ID).unwrap());
    request.seal(&key, time, &random, &mut out).unwrap();
    out
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A header that somebody recorded was good again on another inbound, and on the same one after a restart.
#[test]
fn a_used_vmess_header_is_refused_by_other_inbounds_and_after_a_restart() {
    let place = Place::new();
    let (one, two, to) = (free_port(), free_port(), echo().port());
    let inbound = |tag: &str, port: u16| {
        format!(
            r#"{{"tag": "{tag}", "listen": "127.0.0.1", "port": {port}, "protocol": "vmess",
                "settings": {{"clients": [{{"id": "{ID}"}}]}}}}"#
        )
    };
    let rest = format!(
        r#""inbounds": [{}, {}], "outbounds": [{{"protocol": "freedom", "settings": {{"finalRules":
            [{{"action": "allow"}}]}}}}]"#,
        inbound("one", one),
        inbound("two", two)
    );
    let config = place.config("info", &rest);
    let running = Running::start(&config);
    // Who comes as soon as it listens is let in.
    let header = vmess_header(to, now());
    let send = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&header).unwrap();
        stream
    };
    let first = send(one);
    place.wait("access", &format!(" accepted tcp:127.0.0.1:{to}"));
    for (port, tag) in [(one, "one"), (two, "two")] {
        let again = send(port);
        again.shutdown(std::net::Shutdown::Write).unwrap();
        let refusal = format!(
            "[{tag}] 127.0.0.1:{} refused: VMess: this request was seen before",
            again.local_addr().unwrap().port()
        );
        place.wait("error", &refusal);
    }
    drop(first);
    // At once, as a service manager would.
    assert_eq!(running.stop_hard(), None);
    let running = Running::start(&config);
    for port in [one, two] {
        let again = send(port);
        again.shutdown(std::net::Shutdown::Write).unwrap();
        let refusal = format!(
            " 127.0.0.1:{} refused: the request was made ",
            again.local_addr().unwrap().port()
        );
        place.wait("error", &refusal);
    }
    // A header of now is let in.
    let mut fresh = TcpStream::connect(("127.0.0.1", one)).unwrap();
    fresh.write_all(&vmess_header(to, now())).unwrap();
    until("it is not let in", || place.lines("access", " accepted ").len() >= 2);
    assert_eq!(place.lines("access", " accepted ").len(), 2);
    drop(fresh);
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}
