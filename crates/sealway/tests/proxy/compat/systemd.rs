//! A service manager: what it is told, the sockets that it holds, and the units that are for it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::{Program, node, private, through};
use crate::common::proxy::free_port;
use crate::common::{PATIENCE, PROGRAM, private_folder, ran, run, sealway, until, workspace};

/// Starts it without a word.
fn start(command: &mut Command) -> Program {
    Program::start(command.stderr(Stdio::null()).stdout(Stdio::null()))
}

fn ends(mut service: Program) {
    service.signal(Signal::TERM);
    assert_eq!(service.ended().code(), Some(0));
}

#[test]
fn the_manager_is_told_of_every_step_and_fed() {
    let folder = private_folder();
    let path = folder.path().join("notify");
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut buffer = [0; 1000];
        let len = told.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    // The dog is fed all the time; everything else has its order.
    let after_food = || {
        std::iter::repeat_with(next)
            .find(|text| text != "WATCHDOG=1\n")
            .unwrap()
    };
    let port = free_port();
    let config = private(folder.path(), "c.json", &node(port, r#"{"access": "none"}"#));
    let mut command = sealway(&["run", "-c", config.to_str().unwrap()]);
    let service = start(command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000"));
    let ready = after_food();
    assert!(ready.starts_with("READY=1\nSTATUS=serving"), "{ready}");
    // It is ready when it listens, not before.
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    let food = std::iter::repeat_with(next).filter(|text| text == "WATCHDOG=1\n");
    assert_eq!(food.take(3).count(), 3);
    service.signal(Signal::HUP);
    let reloading = after_food();
    let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(since.trim_end().parse::<u64>().unwrap() > 0, "{reloading}");
    let ready = after_food();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    service.signal(Signal::TERM);
    let stopping = after_food();
    assert!(stopping.starts_with("STOPPING=1\n"), "{stopping}");
    ends(service);
}

#[test]
fn sockets_of_the_manager_are_taken_by_name_and_by_address() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().port();
    let (by_name, by_address) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let ports = [&by_name, &by_address].map(|one| one.local_addr().unwrap().port());
    let folder = private_folder();
    // The port of this inbound is one that nobody may have; the name counts.
    let text = node(1, r#"{"access": "none"}"#).replace(
        r#""inbounds": ["#,
        &format!(
            r#""inbounds": [{{"tag": "other", "listen": "127.0.0.1", "port": {}, "protocol": "vless",
                "settings": {{"clients": [{{"id": "{}"}}], "decryption": "none"}}}}, "#,
            ports[1],
            super::ID
        ),
    );
    let config = private(folder.path(), "c.json", &text);
    // Whoever comes before the program has begun, and between two runs of it, waits and is served.
    for _ in 0..2 {
        let streams = ports.map(|port| through(port, to));
        let clone = |one: &TcpListener| OwnedFd::from(one.try_clone().unwrap());
        let mut command = Command::new("sh");
        let script =
            "exec 3<&0 0</dev/null 4<&1 1>&2; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=in:unknown; exec \"$@\"";
        command.args(["-c", script, "sh", PROGRAM, "run", "-c", config.to_str().unwrap()]);
        command.stdin(clone(&by_name)).stdout(clone(&by_address));
        let service = Program::start(command.stderr(Stdio::null()));
        for _ in &streams {
            target.accept().unwrap();
        }
        drop(streams);
        ends(service);
    }
}

#[test]
fn what_is_no_listener_is_refused_and_said() {
    let folder = private_folder();
    let config = private(folder.path(), "c.json", &node(free_port(), "{}"));
    let mut command = Command::new("sh");
    let script = "exec 3</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; exec \"$@\"";
    command.args(["-c", script, "sh", PROGRAM, "run", "-c", config.to_str().unwrap()]);
    ran(&mut command).says(1, &["the socket web of the service manager"]);
    // What is meant for another process is not touched.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = private(folder.path(), "d.json", &node(taken.local_addr().unwrap().port(), "{}"));
    let mut command = sealway(&["run", "-c", config.to_str().unwrap()]);
    command
        .env("LISTEN_PID", "1")
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDNAMES", "in");
    ran(&mut command).says(1, &["another program listens there"]);
}

/// Directives of units as systemd 252 knows them, by section: those that ours may have.
const KNOWN: &[(&str, &str)] = &[
    ("Unit", "Description Documentation Wants After"),
    (
        "Service",
        "Type NotifyAccess ExecStart ExecReload Environment LoadCredential WatchdogSec TimeoutStopSec Restart \
         RestartSec RestartPreventExitStatus DynamicUser LogsDirectory LogsDirectoryMode StateDirectory \
         StateDirectoryMode UMask LimitNOFILE LimitCORE AmbientCapabilities CapabilityBoundingSet \
         NoNewPrivileges ProtectSystem ProtectHome PrivateTmp PrivateDevices ProtectClock ProtectHostname \
         ProtectControlGroups ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc \
         RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality \
         MemoryDenyWriteExecute RemoveIPC KeyringMode SystemCallArchitectures SystemCallFilter \
         SystemCallErrorNumber",
    ),
    ("Socket", "ListenStream FileDescriptorName Service Backlog NoDelay"),
    ("Install", "WantedBy"),
];

/// Section, directive and value of each line of a unit.
fn directives(unit: &str) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(workspace().join("packaging/systemd").join(unit)).unwrap();
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{unit}: {line}"));
        found.push((section.clone(), name.to_owned(), value.to_owned()));
    }
    found
}

#[test]
fn units_are_spelt_right_and_start_the_program() {
    for unit in ["sealway.service", "sealway.socket"] {
        for (section, name, value) in directives(unit) {
            let known = KNOWN.iter().find(|(known, _)| *known == section);
            let (_, names) = known.unwrap_or_else(|| panic!("{unit}: no section {section}"));
            assert!(names.split(' ').any(|known| known == name), "{unit}: {section}: {name}");
            assert!(!value.is_empty() && value.trim() == value, "{unit}: {name}");
        }
    }
    let service = directives("sealway.service");
    let value = |wanted: &str| service.iter().find(|(_, name, _)| name == wanted).unwrap().2.clone();
    // Only the service reads what is secret, and it is started again after nothing that stays wrong.
    assert!(value("LoadCredential").starts_with("config.json:"));
    assert_eq!([value("DynamicUser"), value("UMask")], ["yes", "0077"]);
    assert_eq!(value("RestartPreventExitStatus"), "2 23");
    assert!(value("SystemCallFilter").contains("pidfd_getfd"));
    let folder = private_folder();
    private(folder.path(), "config.json", &node(free_port(), "{}"));
    // What fails there is started again whatever it ends with.
    assert!(!service.iter().any(|(_, name, _)| name == "ExecStartPre"));
    let line = value("ExecStart").replace("${CREDENTIALS_DIRECTORY}", folder.path().to_str().unwrap());
    let mut words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[0], "/usr/local/bin/sealway");
    words.push("-test");
    let ran = run(&words[1..]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Configuration OK.\n"),
        "{line}: {ran:?}"
    );
    words.pop();
    private(folder.path(), "config.json", "{");
    run(&words[1..]).says(23, &[]);
}

/// A manager that has gone away stops nothing.
#[test]
fn a_manager_that_does_not_listen_is_no_reason_to_stop() {
    let folder = private_folder();
    let port = free_port();
    let config = private(folder.path(), "c.json", &node(port, r#"{"access": "none"}"#));
    let mut command = sealway(&["run", "-c", config.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", folder.path().join("absent"));
    let service = start(command.env("WATCHDOG_USEC", "1000"));
    until("it does not listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    ends(service);
}
