//! The plain server against programs: `openssl s_client`, `curl` and Go's crypto/tls. What is not there is
//! skipped (SEALWAY_REQUIRE_PEERS=1 makes its absence a failure).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use sealway_tls::Error;
use sealway_tls::group::Group;
use sealway_tls::server::{Agreed, Config};
use sealway_tls::suite::CipherSuite;

use crate::common::{End, Made, ecdsa, ed25519};

/// True if the program is there.
fn have(program: &str, argument: &str) -> bool {
    let found = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let there = found.is_ok_and(|status| status.success());
    if !there {
        println!("SKIPPED: there is no {program}");
        assert!(env::var_os("SEALWAY_REQUIRE_PEERS").is_none(), "there is no {program}");
    }
    there
}

/// What a connection ended with.
type Served = Result<Agreed, Error>;

/// Serves one connection: whatever comes is answered in capitals, and what begins like HTTP by a page. Ends when the client does.
fn serve(mut socket: TcpStream, config: Config) -> Served {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut end = End::new(config);
    let mut buffer = [0; 16 << 10];
    let mut seed = fs::File::open("/dev/urandom").unwrap();
    end.random = Box::new(move |out| seed.read_exact(out).unwrap());
    loop {
        let n = socket.read(&mut buffer).expect("the client fell silent");
        if n == 0 {
            break;
        }
        let took = end.take(&buffer[..n], usize::MAX);
        let got = std::mem::take(&mut end.got);
        if got.starts_with(b"GET ") {
            end.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
            end.close();
        } else if !got.is_empty() {
            end.say(&got.to_ascii_uppercase());
        }
        if end.closed {
            end.close();
        }
        // The client may be gone already.
        let _ = socket.write_all(&std::mem::take(&mut end.out));
        took?;
        if end.closed {
            break;
        }
    }
    Ok(end.connected.expect("the handshake is through").agreed)
}

/// A server for one connection, and its port.
fn start(config: Config) -> (u16, thread::JoinHandle<Served>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, thread::spawn(move || serve(listener.accept().unwrap().0, config)))
}

/// A folder of this test's own, with the certificate in it.
fn folder(name: &str, made: &Made) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("server.pem"), &made.pem).unwrap();
    folder
}

fn name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::ChaCha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
    }
}

/// Runs `openssl s_client` with these lines; what it wrote.
fn s_client(folder: &Path, port: u16, more: &[&str], lines: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-tls1_3",
            "-servername",
            "server.example",
            "-verify_return_error",
        ])
        .args(["-connect", &format!("127.0.0.1:{port}"), "-CAfile"])
        .arg(folder.join("server.pem"))
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        // A command is one read of the client's.
        thread::sleep(Duration::from_millis(700));
        stdin.write_all(line.as_bytes()).unwrap();
    }
    thread::sleep(Duration::from_millis(700));
    drop(stdin);
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn openssl_with_every_suite_asked_again_or_not() {
    if !have("openssl", "version") {
        return;
    }
    let mut runs = Vec::new();
    for (made, kind) in [(ed25519(), "ed25519"), (ecdsa(), "ecdsa")] {
        let folder = folder(&format!("openssl-{kind}"), &made);
        for suite in CipherSuite::ALL {
            // The first group is the one with a share; the second is told by the server.
            for groups in ["X25519", "P-256:X25519"] {
                let mut config = Config::new(made.identity.clone());
                config.groups = Group::SHARED.to_vec();
                let (port, served) = start(config);
                let folder = folder.clone();
                runs.push(thread::spawn(move || {
                    let more = ["-ciphersuites", name(suite), "-groups", groups];
                    // `K`: a new key, and the server is asked for one; `Q`: the end.
                    let said = s_client(&folder, port, &more, &["first\n", "K\n", "second\n", "Q\n"]);
                    assert!(
                        said.contains("FIRST") && said.contains("SECOND"),
                        "{suite:?} {groups}: {said}"
                    );
                    assert!(said.contains("Verify return code: 0"), "{said}");
                    let agreed = served.join().unwrap().unwrap();
                    assert_eq!((agreed.suite, agreed.group), (suite, Group::X25519));
                    assert_eq!(agreed.server_name.as_deref(), Some(&b"server.example"[..]));
                }));
            }
        }
    }
    for run in runs {
        run.join().unwrap();
    }
}

#[test]
fn openssl_is_told_what_cannot_be_agreed_on() {
    if !have("openssl", "version") {
        return;
    }
    let made = ecdsa();
    let folder = folder("openssl-refused", &made);
    for more in [&["-groups", "P-256"][..], &["-ciphersuites", "TLS_AES_128_CCM_SHA256"]] {
        let mut config = Config::new(made.identity.clone());
        config.groups = Group::SHARED.to_vec();
        let (port, served) = start(config);
        s_client(&folder, port, more, &[]);
        assert!(matches!(served.join().unwrap(), Err(Error::Peer { .. })));
    }
}

#[test]
fn curl_gets_a_page() {
    if !have("curl", "--version") {
        return;
    }
    let made = ecdsa();
    let folder = folder("curl", &made);
    let mut config = Config::new(made.identity.clone());
    config.alpn = vec![b"http/1.1".to_vec()];
    let (port, served) = start(config);
    let said = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--max-time",
            "20",
            "--noproxy",
            "*",
            "--tlsv1.3",
            "--cacert",
        ])
        .arg(folder.join("server.pem"))
        .args(["--resolve", &format!("server.example:{port}:127.0.0.1")])
        .arg(format!("https://server.example:{port}/"))
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        "hello",
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert_eq!(served.join().unwrap().unwrap().alpn.as_deref(), Some(&b"http/1.1"[..]));
}

/// A client in Go: connects with the curves of its arguments, says a line twice, checks the answers and that the end is told.
const GO: &str = r#"package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strconv"
)

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	var curves []tls.CurveID
	for _, one := range os.Args[3:] {
		id, err := strconv.ParseUint(one, 0, 16)
		must(err)
		curves = append(curves, tls.CurveID(id))
	}
	conn, err := tls.Dial("tcp", os.Args[2], &tls.Config{
		RootCAs: roots, ServerName: "server.example", MinVersion: tls.VersionTLS13, CurvePreferences: curves,
	})
	must(err)
	reader := bufio.NewReader(conn)
	for range 2 {
		_, err = conn.Write([]byte("a line\n"))
		must(err)
		line, err := reader.ReadString('\n')
		must(err)
		if line != "A LINE\n" {
			must(fmt.Errorf("another line: %q", line))
		}
	}
	must(conn.CloseWrite())
	fmt.Printf("%#x %#x\n", conn.ConnectionState().CipherSuite, uint16(conn.ConnectionState().CurveID))
	io.Copy(io.Discard, reader)
}
"#;

#[test]
fn go_with_every_suite_and_group() {
    let usual = "/usr/local/go/bin/go";
    let go = if Path::new(usual).exists() { usual } else { "go" };
    if !have(go, "version") {
        return;
    }
    let made = ecdsa();
    let folder = folder("go", &made);
    fs::write(folder.join("main.go"), GO).unwrap();
    fs::write(folder.join("go.mod"), "module client\n\ngo 1.24\n").unwrap();
    let built = Command::new(go)
        .args(["build", "-o", "client", "."])
        .current_dir(&folder)
        .env("GOCACHE", env::temp_dir().join("sealway-go-cache"))
        .env("GOFLAGS", "-mod=mod")
        .status()
        .unwrap();
    assert!(built.success());
    for suite in CipherSuite::ALL {
        for (group, curves) in [
            (Group::X25519, &["0x1d"][..]),
            (Group::X25519MlKem768, &["0x11ec", "0x1d"]),
            (Group::Secp256r1, &["0x17"]),
            (Group::Secp384r1, &["0x18", "0x17"]),
            // Asked for X25519, of which a share was not sent.
            (Group::X25519, &["0x17", "0x1d"]),
        ] {
            let mut config = Config::new(made.identity.clone());
            config.suites = vec![suite];
            if curves.len() == 2 && curves[0] != "0x11ec" {
                config.groups = vec![group];
            }
            let (port, served) = start(config);
            let said = Command::new(folder.join("client"))
                .arg(folder.join("server.pem"))
                .arg(format!("127.0.0.1:{port}"))
                .args(curves)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert_eq!(said.trim(), format!("{:#x} {:#x}", suite.id(), group.id()));
            let agreed = served.join().unwrap().unwrap();
            assert_eq!((agreed.suite, agreed.group), (suite, group));
        }
    }
}
