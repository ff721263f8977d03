//! SIGHUP: the configuration of `sealway run` is read again, while streams run and connections arrive.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::proxy::{Running, echo, free_port};
use crate::common::{PATIENCE, private_folder, until};

const RELOADS: usize = 12;
const STREAMS: usize = 40;
/// Between two connections that arrive.
const PAUSE: Duration = Duration::from_millis(10);

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Whether a connection carries both ways.
fn serves(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 4];
    stream.write_all(b"ping").is_ok() && stream.read_exact(&mut answer).is_ok() && &answer == b"ping"
}

struct Place {
    folder: tempfile::TempDir,
    to: SocketAddr,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: private_folder(),
            to: echo(),
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("error.log")
    }

    /// Writes the configuration: doors at these ports, by their tags, and whatever else.
    fn write(&self, doors: &[(&str, u16)], rest: &str) -> PathBuf {
        let door = |(tag, port): &(&str, u16)| {
            format!(
                r#"{{"tag": "{tag}", "listen": "127.0.0.1", "port": {port}, "protocol": "dokodemo-door",
                "settings": {{"address": "127.0.0.1", "port": {}}}}}"#,
                self.to.port()
            )
        };
        let doors: Vec<String> = doors.iter().map(door).collect();
        let text = format!(
            "{{\"log\": {{\"error\": \"{}\"}},\n\"inbounds\": [{}],\n\"outbounds\": [{{\"tag\": \"direct\", \"protocol\": \"freedom\"}},\n\
             {{\"tag\": \"block\", \"protocol\": \"blackhole\"}}]{rest}}}",
            self.log().display(),
            doors.join(", ")
        );
        let path = self.folder.path().join("config.json");
        fs::write(&path, text).unwrap();
        path
    }

    /// Sends SIGHUP and waits for one more line with this in the log.
    fn hang_up(&self, running: &Running, wanted: &str) {
        one_more(&self.log(), wanted, || running.signal(Signal::HUP));
    }
}

/// Does something and waits for one more line with this in a log.
fn one_more(log: &Path, wanted: &str, act: impl FnOnce()) {
    let text = || fs::read_to_string(log).unwrap_or_default();
    let before = text().matches(wanted).count();
    act();
    until(wanted, || text().matches(wanted).count() != before);
}

fn descriptors(of: &Path) -> usize {
    fs::read_dir(of.join("fd")).unwrap().count()
}

/// KiB that are in memory.
fn memory(of: &Path) -> usize {
    let status = fs::read_to_string(of.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn reloads_reset_nobody_and_refuse_nobody() {
    let place = Place::new();
    let (steady, other) = (free_port(), free_port());
    let running = Running::start(&place.write(&[("in", steady)], ""));
    let process = PathBuf::from(format!("/proc/{}", running.program.id()));
    place.hang_up(&running, "was taken up");
    let before = descriptors(&process);
    let mut streams: Vec<TcpStream> = (0..STREAMS).map(|_| connect(steady)).collect();
    assert!(streams.iter_mut().all(serves));
    let (done, arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let arriving = std::thread::spawn({
        let (done, arrived) = (Arc::clone(&done), Arc::clone(&arrived));
        move || {
            while !done.load(Ordering::Relaxed) {
                assert!(serves(&mut connect(steady)), "a connection that has just come");
                arrived.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        }
    });
    let mut after_first = 0;
    for round in 0..RELOADS {
        // Listeners come and go, rules and levels change, and the steady one is rebuilt behind its socket.
        let rest = format!(
            r#", "policy": {{"levels": {{"0": {{"connIdle": {}}}}}}},
            "routing": {{"rules": [{{"domain": ["full:{round}.test"], "outboundTag": "block"}}]}}"#,
            300 + round
        );
        match round % 2 {
            0 => drop(place.write(&[("other", other), ("in", steady)], &rest)),
            _ => drop(place.write(&[("in", steady)], &rest)),
        }
        place.hang_up(&running, "was taken up");
        assert!(streams.iter_mut().all(serves), "round {round}");
        let there = TcpStream::connect(("127.0.0.1", other)).is_ok();
        assert_eq!(there, round % 2 == 0, "round {round}");
        if round == 1 {
            after_first = memory(&process);
        }
    }
    let grown = memory(&process).saturating_sub(after_first);
    done.store(true, Ordering::Relaxed);
    arriving.join().unwrap();
    assert!(arrived.load(Ordering::Relaxed) > 5);
    drop(streams);
    until("descriptors stay open", || descriptors(&process) <= before);
    assert!(grown < 8 << 10, "{grown} KiB more");
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

#[test]
fn a_wrong_configuration_changes_nothing_and_says_where_it_is_wrong() {
    let place = Place::new();
    let (port, moved) = (free_port(), free_port());
    let path = place.write(&[("in", port)], "");
    let running = Running::start(&path);
    let mut kept = connect(port);
    assert!(serves(&mut kept));
    let rule = |to: &str| {
        format!(",\n\"routing\": {{\"rules\": [\n{{\"inboundTag\": [\"in\"], \"outboundTag\": \"{to}\"}}]}}")
    };
    let said = |text: &str| {
        let log = fs::read_to_string(place.log()).unwrap();
        assert!(log.contains(text), "{text}: {log}");
    };
    for (text, wanted) in [
        ("{".to_owned(), format!("{}:1:", path.display())),
        (
            fs::read_to_string(place.write(&[("in", moved)], &rule("none"))).unwrap(),
            format!("{}:7:", path.display()),
        ),
    ] {
        fs::write(&path, text).unwrap();
        place.hang_up(&running, "SIGHUP: nothing was changed: ");
        said(&wanted);
        assert!(serves(&mut kept) && serves(&mut connect(port)));
        assert!(TcpStream::connect(("127.0.0.1", moved)).is_err());
    }
    // The port moves, and a rule blocks who comes there.
    place.write(&[("in", moved)], &rule("block"));
    place.hang_up(&running, "1 listeners opened, 0 kept, 1 closed");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!serves(&mut connect(moved)) && serves(&mut kept));
    // What cannot be changed is named.
    for (rest, wanted) in [
        (
            r#""api": {"tag": "late"}, "routing": {"rules": [{"network": "udp", "outboundTag": "late"}]}"#,
            "`api` says",
        ),
        (r#""metrics": {"listen": "127.0.0.1:1"}"#, "`metrics` says"),
        (
            r#""stats": {"store": "/none/used.db"}"#,
            "`stats.store` and `stats.node` say",
        ),
    ] {
        place.write(&[("in", moved)], &format!(", {rest}"));
        place.hang_up(&running, &format!("what {wanted} changes with a restart only"));
        assert!(serves(&mut connect(moved)));
    }
    // It came before others had its port.
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    place.write(&[("in", somebody.local_addr().unwrap().port())], "");
    place.hang_up(&running, "nothing was changed: ");
    assert!(serves(&mut connect(moved)));
    drop(kept);
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}

#[test]
fn the_error_log_goes_where_a_reload_says() {
    let place = Place::new();
    let (port, moved) = (free_port(), free_port());
    let first = place.log();
    let second = place.folder.path().join("second.log");
    let path = place.write(&[("in", port)], "");
    let running = Running::start(&path);
    let write = |port: u16, log: &str| {
        let text = fs::read_to_string(place.write(&[("in", port)], "")).unwrap();
        let begun = format!("{{\"error\": \"{}\"}}", first.display());
        assert!(text.contains(&begun), "{text}");
        fs::write(&path, text.replace(&begun, log)).unwrap();
    };
    let hang_up = || running.signal(Signal::HUP);
    let text = |log: &Path| fs::read_to_string(log).unwrap_or_default();

    // Another file, and another level.
    let debug = format!("{{\"error\": \"{}\", \"loglevel\": \"debug\"}}", second.display());
    write(port, &debug);
    let goes_on = format!("the error log goes on in {}", second.display());
    one_more(&second, "was taken up", || one_more(&first, &goes_on, hang_up));
    assert!(!text(&first).contains("[Debug]"));
    one_more(&second, "[Debug] [in] ", || assert!(serves(&mut connect(port))));

    // Where nothing is logged, no file is needed.
    write(moved, "{\"error\": \"/none/error.log\", \"loglevel\": \"none\"}");
    one_more(&second, "was taken up", hang_up);
    write(port, &debug);
    one_more(&second, "was taken up", hang_up);
    // Otherwise nothing is changed where there is no such place: neither the log nor anything else.
    write(moved, "{\"error\": \"/none/error.log\"}");
    one_more(&second, "nothing was changed", hang_up);
    let said = text(&second);
    assert!(
        said.contains("log.error: ") && said.contains("/none/error.log cannot be opened"),
        "{said}"
    );
    assert!(serves(&mut connect(port)));
    assert!(TcpStream::connect(("127.0.0.1", moved)).is_err());
    one_more(&second, "[Debug]", || assert!(serves(&mut connect(port))));

    // What is opened again is the file of now.
    let kept = place.folder.path().join("kept.log");
    fs::rename(&second, &kept).unwrap();
    let had = text(&first);
    running.signal(Signal::USR1);
    one_more(&second, "[Debug]", || {
        until("no new file", || {
            assert!(serves(&mut connect(port)));
            second.exists()
        });
        assert!(serves(&mut connect(port)));
    });
    assert_eq!(text(&first), had);

    // And back, at the usual level.
    place.write(&[("in", port)], "");
    one_more(&first, "was taken up", hang_up);
    let had = text(&second);
    assert!(serves(&mut connect(port)));
    place.write(&[("in", port)], "");
    one_more(&first, "was taken up", hang_up);
    assert!(!text(&first).contains("[Debug]"));
    let after = text(&second);
    assert!(
        after.starts_with(&had) && !after[had.len()..].contains("taken up"),
        "{after}"
    );
    assert_eq!(running.stop(Signal::TERM).code(), Some(0));
}
