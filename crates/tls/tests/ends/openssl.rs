//! `openssl s_server` as the server.

use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};

use sealway_tls::suite::CipherSuite;

use super::*;

struct Server {
    process: Child,
    input: ChildStdin,
    port: u16,
    folder: std::path::PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn there() -> bool {
    let found = Command::new("openssl")
        .arg("version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    assert!(
        found || std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none(),
        "openssl is not installed"
    );
    if !found {
        eprintln!("openssl is not installed: not tried");
    }
    found
}

impl Server {
    fn start(identity: &Identity, name: &str, options: &[&str]) -> Server {
        let folder = std::env::temp_dir().join(format!("sealway-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cert.pem"), &identity.certificate_pem).unwrap();
        std::fs::write(folder.join("key.pem"), &identity.key_pem).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", &format!("127.0.0.1:{port}"), "-tls1_3", "-cert"])
            .arg(folder.join("cert.pem"))
            .arg("-key")
            .arg(folder.join("key.pem"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        Server {
            process,
            input,
            port,
            folder,
        }
    }

    fn dial(&self) -> TcpStream {
        for _ in 0..200 {
            if let Ok(tcp) = TcpStream::connect(("127.0.0.1", self.port)) {
                return tcp;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("openssl does not listen");
    }
}

#[test]
fn every_suite_and_kind_of_key() {
    if !there() {
        return;
    }
    let names = [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    ];
    for (number, algorithm) in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_RSA_SHA256,
    ]
    .into_iter()
    .enumerate()
    {
        let identity = identity(algorithm);
        for (suite, name) in CipherSuite::ALL.into_iter().zip(names) {
            let folder = format!("{number}-{name}");
            let server = Server::start(&identity, &folder, &["-rev", "-quiet", "-ciphersuites", name]);
            for hello in [plain(&Offer::default()), browser()] {
                let (mut connection, agreed) = connect(server.dial(), hello, &identity, 777).unwrap();
                assert_eq!((agreed.suite, agreed.group), (suite.id(), 0x001d));
                connection.send(b"stressed\n");
                assert_eq!(connection.wait(9), b"desserts\n");
                connection.close();
            }
        }
    }
}

#[test]
fn another_hello_is_asked_for() {
    if !there() {
        return;
    }
    let identity = identity(&rcgen::PKCS_ECDSA_P256_SHA256);
    let server = Server::start(&identity, "retry", &["-rev", "-quiet", "-groups", "X25519"]);
    let offer = Offer {
        shares: 1,
        ..Offer::default()
    };
    let (mut connection, agreed) = connect(server.dial(), plain(&offer), &identity, 50).unwrap();
    assert_eq!(agreed.group, 0x001d);
    connection.send(b"stressed\n");
    assert_eq!(connection.wait(9), b"desserts\n");
    drop(server);
    // Groups that browsers offer and have no share of.
    for (name, group) in [("P-256", 0x17), ("P-384", 0x18)] {
        let server = Server::start(&identity, name, &["-rev", "-quiet", "-groups", name]);
        for hello in [browser(), plain(&Offer::default())] {
            let (mut connection, agreed) = connect(server.dial(), hello, &identity, 50).unwrap();
            assert_eq!(agreed.group, group);
            connection.send(b"stressed\n");
            assert_eq!(connection.wait(9), b"desserts\n");
        }
    }
    // One that nobody offers.
    let server = Server::start(&identity, "p521", &["-rev", "-quiet", "-groups", "P-521"]);
    let error = connect(server.dial(), browser(), &identity, 50).err().unwrap();
    assert_eq!(error, Error::Alerted(Alert::HandshakeFailure as u8));
}

#[test]
fn keys_are_changed_both_ways_and_a_certificate_is_asked_for() {
    if !there() {
        return;
    }
    let identity = identity(&rcgen::PKCS_ECDSA_P256_SHA256);
    let mut server = Server::start(&identity, "keys", &["-verify", "1", "-alpn", "h2"]);
    let (mut connection, agreed) = connect(server.dial(), browser(), &identity, 5000).unwrap();
    assert_eq!(agreed.alpn.as_deref(), Some(&b"h2"[..]));
    for _ in 0..3 {
        // A line with one K has it ask for another key, and change its own.
        server.input.write_all(b"K\n").unwrap();
        connection.update_keys();
        // What it reads at once is one command.
        std::thread::sleep(Duration::from_millis(300));
        server.input.write_all(b"and on it goes\n").unwrap();
        assert_eq!(connection.wait(15), b"and on it goes\n");
    }
    connection.close();
}
