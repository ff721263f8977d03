//! LocalSend's way of sending a file, built in: one HTTPS POST whose body is the file, HTTP/1.1 over TLS 1.3 with
//! one suite by rustls. A yardstick for the lab's workload `files`, not a server for anybody else: it takes one
//! connection and one file, and ends.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::generate_simple_self_signed;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedCipherSuite,
};
use sealway_aead::Suite;

/// Bytes that are read, sealed and written at once; LocalSend's receiver writes as many.
const PIECE: usize = 512 * 1024;

/// Most bytes before the body of a request or of its answer.
const MAX_HEAD: usize = 8 * 1024;

/// How long either end waits for the other's next byte.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a file was not moved.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostError {
    /// The system refused something, or the connection broke.
    Io(io::Error),
    /// TLS or its certificate cannot be set up.
    Tls(String),
    /// The other end said what is no such request or answer.
    Peer(String),
    /// The file has no name that can be sent.
    Name,
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostError::Io(error) => error.fmt(f),
            PostError::Tls(what) => write!(f, "cannot set up TLS: {what}"),
            PostError::Peer(what) => write!(f, "the other end: {what}"),
            PostError::Name => {
                f.write_str("the file's name has other characters than letters, digits, \".\", \"-\" and \"_\"")
            }
        }
    }
}

impl std::error::Error for PostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PostError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for PostError {
    fn from(error: io::Error) -> Self {
        PostError::Io(error)
    }
}

fn tls(error: impl fmt::Display) -> PostError {
    PostError::Tls(error.to_string())
}

/// Takes one file into `folder`. The certificate, made for this once, is written to `certificate` before `listening` is
/// told the address on 127.0.0.1.
///
/// # Errors
/// [`PostError`]; a file that came in part stays.
pub fn receive(
    folder: &Path,
    certificate: &Path,
    suite: Suite,
    listening: impl FnOnce(SocketAddr) -> io::Result<()>,
) -> Result<(), PostError> {
    // Of P-256.
    let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).map_err(tls)?;
    let secret = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(tls)?;
    let config = ServerConfig::builder_with_provider(provider(suite)?)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], secret)
        .map_err(tls)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    std::fs::write(certificate, made.cert.pem())?;
    listening(listener.local_addr()?)?;
    let (socket, _) = listener.accept()?;
    prepare(&socket)?;
    let connection = ServerConnection::new(Arc::new(config)).map_err(tls)?;
    let mut stream = StreamOwned::new(connection, socket);

    let (head, rest) = head(&mut stream)?;
    let request = Request::parse(&head)?;
    let mut file = File::create_new(folder.join(&request.name))?;
    file.write_all(&rest)?;
    let left = request
        .bytes
        .checked_sub(rest.len() as u64)
        .ok_or_else(|| PostError::Peer("more bytes than it announced".to_owned()))?;
    copy(&mut stream, &mut file, left, |left| {
        PostError::Peer(format!("it ended with {left} bytes left"))
    })?;
    drop(file);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

/// Sends one file to a [`receive`] that has the certificate in the file `certificate`.
///
/// # Errors
/// [`PostError`].
pub fn send(to: SocketAddr, certificate: &Path, suite: Suite, path: &Path) -> Result<(), PostError> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .filter(|name| is_name(name));
    let name = name.ok_or(PostError::Name)?;
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificate).map_err(tls)?)
        .map_err(tls)?;
    let config = ClientConfig::builder_with_provider(provider(suite)?)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let socket = TcpStream::connect(to)?;
    prepare(&socket)?;
    let mut connection = ClientConnection::new(Arc::new(config), ServerName::from(to.ip())).map_err(tls)?;
    // The default of 64 KiB would make a write of every eighth of a piece.
    connection.set_buffer_limit(Some(2 * PIECE));
    let mut stream = StreamOwned::new(connection, socket);
    write!(
        stream,
        "POST /upload/{name} HTTP/1.1\r\nHost: {to}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
    )?;
    copy(&mut file, &mut stream, bytes, |_| {
        PostError::Io(io::Error::other("the file became shorter"))
    })?;
    stream.flush()?;
    let (answer, _) = head(&mut stream)?;
    let first = answer.lines().next().unwrap_or_default();
    if first.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(PostError::Peer(format!("it answered {first:?}")))
}

/// Whether TLS 1.3 has this suite.
pub fn has(suite: Suite) -> bool {
    in_tls(suite).is_some()
}

fn in_tls(suite: Suite) -> Option<SupportedCipherSuite> {
    match suite {
        Suite::Aes128Gcm => Some(aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256),
        Suite::Aes256Gcm => Some(aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384),
        Suite::ChaCha20Poly1305 => Some(aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
        _ => None,
    }
}

/// What the TLS library of this project offers, held to one suite.
fn provider(suite: Suite) -> Result<Arc<CryptoProvider>, PostError> {
    let only = in_tls(suite).ok_or_else(|| tls(format_args!("TLS 1.3 has no {suite}")))?;
    Ok(Arc::new(CryptoProvider {
        cipher_suites: vec![only],
        ..aws_lc_rs::default_provider()
    }))
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))
}

/// Moves `left` bytes in pieces; `short` is why one that ends with some left has failed.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    mut left: u64,
    short: impl Fn(u64) -> PostError,
) -> Result<(), PostError> {
    let mut piece = vec![0; PIECE];
    while left > 0 {
        let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = from.read(&mut piece[..most])?;
        if n == 0 {
            return Err(short(left));
        }
        to.write_all(&piece[..n])?;
        left -= n as u64;
    }
    Ok(())
}

/// Everything up to the empty line, and what came with it.
fn head(stream: &mut impl Read) -> Result<(String, Vec<u8>), PostError> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            read.truncate(end);
            let head = String::from_utf8(read).map_err(|_| PostError::Peer("its head is no text".to_owned()))?;
            return Ok((head, rest));
        }
        if read.len() > MAX_HEAD {
            return Err(PostError::Peer("its head does not end".to_owned()));
        }
        match stream.read(&mut piece)? {
            0 => return Err(PostError::Peer("it ended before its head did".to_owned())),
            n => read.extend_from_slice(&piece[..n]),
        }
    }
}

/// What a request asks for.
#[derive(Debug, Eq, PartialEq)]
struct Request {
    name: String,
    bytes: u64,
}

impl Request {
    fn parse(head: &str) -> Result<Request, PostError> {
        let refuse = |what: &str| PostError::Peer(what.to_owned());
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let name = first
            .strip_prefix("POST /upload/")
            .and_then(|rest| rest.strip_suffix(" HTTP/1.1"))
            .filter(|name| is_name(name))
            .ok_or_else(|| refuse("it asks for something else"))?;
        let mut bytes = None;
        for line in lines {
            let Some((key, value)) = line.split_once(':') else {
                return Err(refuse("it has a line that is no header"));
            };
            if key.eq_ignore_ascii_case("transfer-encoding") {
                return Err(refuse("it does not say how long the file is"));
            }
            if key.eq_ignore_ascii_case("content-length") {
                let value = value.trim();
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse::<u64>().ok().filter(|_| digits && bytes.is_none());
                bytes = Some(number.ok_or_else(|| refuse("its length is no number, or there are two"))?);
            }
        }
        Ok(Request {
            name: name.to_owned(),
            bytes: bytes.ok_or_else(|| refuse("it does not say how long the file is"))?,
        })
    }
}

/// One component of a path, with nothing in it that needs escaping.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=255).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;

    use super::*;

    /// Takes a file, while `sends` is told where.
    fn taken(to: &Path, certificate: &Path, suite: Suite, sends: impl FnOnce(SocketAddr)) -> Result<(), PostError> {
        let (tell, told) = channel();
        let listening = move |address| tell.send(address).map_err(io::Error::other);
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || receive(to, certificate, suite, listening));
            sends(told.recv().unwrap());
            receiver.join().unwrap()
        })
    }

    fn sent(bytes: usize, suite: Suite) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("file-1.bin"), folder.path().join("to"));
        std::fs::create_dir(&to).unwrap();
        let content: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        std::fs::write(&from, &content).unwrap();
        let certificate = folder.path().join("certificate");
        let sends = |address| send(address, &certificate, suite, &from).unwrap();
        taken(&to, &certificate, suite, sends).unwrap();
        assert!(
            std::fs::read(to.join("file-1.bin")).unwrap() == content,
            "{bytes} bytes"
        );
    }

    #[test]
    fn files_of_all_sizes_arrive() {
        for bytes in [0, 1, PIECE - 1, PIECE + 1, 3 * PIECE + 7] {
            sent(bytes, Suite::Aes128Gcm);
        }
        for suite in Suite::ALL.into_iter().filter(|suite| has(*suite)) {
            sent(PIECE + 1, suite);
        }
    }

    #[test]
    fn both_ends_keep_to_their_suite() {
        let provider = |suite| provider(suite).map(|provider| provider.cipher_suites.clone());
        assert_eq!(
            provider(Suite::ChaCha20Poly1305).unwrap(),
            [aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256]
        );
        provider(Suite::XChaCha20Poly1305).unwrap_err();
    }

    #[test]
    fn another_certificate_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("certificate");
        let file = folder.path().join("file");
        std::fs::write(&file, b"x").unwrap();
        let sends = |address| {
            let other = folder.path().join("other");
            let made = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
            std::fs::write(&other, made.cert.pem()).unwrap();
            send(address, &other, Suite::Aes128Gcm, &file).unwrap_err();
        };
        taken(folder.path(), &certificate, Suite::Aes128Gcm, sends).unwrap_err();
    }

    #[test]
    fn requests_are_read_strictly() {
        let parse = |head: &str| Request::parse(head);
        assert_eq!(
            parse("POST /upload/a.b HTTP/1.1\r\nHost: x\r\ncontent-length: 7").unwrap(),
            Request {
                name: "a.b".to_owned(),
                bytes: 7
            }
        );
        for head in [
            "GET /upload/a HTTP/1.1\r\nContent-Length: 7",
            "POST /upload/../a HTTP/1.1\r\nContent-Length: 7",
            "POST /upload/.. HTTP/1.1\r\nContent-Length: 7",
            "POST /upload/ HTTP/1.1\r\nContent-Length: 7",
            "POST /upload/a%2fb HTTP/1.1\r\nContent-Length: 7",
            "POST /upload/a HTTP/1.1",
            "POST /upload/a HTTP/1.1\r\nContent-Length: +7",
            "POST /upload/a HTTP/1.1\r\nContent-Length: 7\r\nContent-Length: 7",
            "POST /upload/a HTTP/1.1\r\nTransfer-Encoding: chunked",
            "POST /upload/a HTTP/1.1\r\nnonsense\r\nContent-Length: 7",
        ] {
            parse(head).unwrap_err();
        }
    }
}
