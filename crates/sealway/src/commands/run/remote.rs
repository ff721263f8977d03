//! Configurations that a server gives out by HTTP: by name, or at a unix socket of this machine.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use sealway_net::dial;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;

/// How long a server has for its whole answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of an answer; no larger configuration is read from a file either.
const MAX_ANSWER: usize = 32 << 20;
/// Bytes of the longest name of an abstract unix socket.
const ABSTRACT_LEN: usize = 107;

/// Where a configuration is asked for.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Remote {
    at: At,
    /// What is asked for there. It may hold a token, so it stands in no message from `?` on.
    path: String,
}

#[derive(Debug, Eq, PartialEq)]
enum At {
    Host {
        tls: bool,
        host: String,
        port: u16,
    },
    File(PathBuf),
    Abstract(Vec<u8>),
    /// Nowhere: the port is none. What stands before the path.
    Nowhere(String),
}

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum Error {
    /// The address cannot be understood.
    Address,
    /// It was not reached, or the connection broke.
    Io(io::Error),
    /// It is no HTTP, or broke off.
    Http(hyper::Error),
    /// It has another answer than the configuration.
    Status(StatusCode),
    /// It gives more than a configuration may have.
    TooLong,
    /// It took longer than it has.
    TooSlow,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Address => f.write_str("no address of a configuration"),
            Error::Io(error) => error.fmt(f),
            Error::Http(error) => error.fmt(f),
            Error::Status(status) => write!(f, "the server answers {status}"),
            Error::TooLong => write!(f, "the server gives more than {} MiB", MAX_ANSWER >> 20),
            Error::TooSlow => write!(f, "the server takes longer than {} seconds", PATIENCE.as_secs()),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl Remote {
    /// Reads `http://…`, `https://…`, `/a/socket:/path`, `@abstract:/path` and `@@padded:/path`. `None`: it is a name of a file.
    pub(crate) fn parse(name: &Path) -> Option<Remote> {
        let text = name.to_str()?;
        if text.starts_with('@') || text.starts_with('/') {
            let (socket, _) = text.split_once(":/")?;
            let path = text[socket.len() + 1..].to_owned();
            let at = match (socket.strip_prefix("@@"), socket.strip_prefix('@')) {
                (Some(padded), _) => {
                    let mut name = padded.as_bytes().to_vec();
                    name.resize(ABSTRACT_LEN.max(name.len()), 0);
                    At::Abstract(name)
                }
                (None, Some(name)) => At::Abstract(name.into()),
                // A colon may stand in the name of a file. A token stays one where the socket is not there yet.
                (None, None) if is_socket(socket) || (path.contains('?') && !name.exists()) => At::File(socket.into()),
                (None, None) => return None,
            };
            return Some(Remote { at, path });
        }
        let (scheme, rest) = text.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        // Nobody is asked for what stands before `@`.
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let at = match host_and_port(authority, if tls { 443 } else { 80 }) {
            Some((host, port)) => At::Host { tls, host, port },
            None => At::Nowhere(format!("{}://{authority}", scheme.to_ascii_lowercase())),
        };
        Some(Remote { at, path })
    }

    /// Whether others on the way can read and change it: plain HTTP with another machine.
    pub(crate) fn is_in_the_clear(&self) -> bool {
        let At::Host { tls: false, host, .. } = &self.at else {
            return false;
        };
        let ip = host.parse::<IpAddr>();
        !(host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.to_canonical().is_loopback()))
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        match &self.at {
            At::Host { tls, .. } => format!("http{}://{}{path}", if *tls { "s" } else { "" }, self.authority()),
            At::Nowhere(address) => format!("{address}{path}"),
            At::File(socket) => format!("{}:{path}", socket.display()),
            At::Abstract(name) => format!("@{}:{path}", String::from_utf8_lossy(name).trim_end_matches('\0')),
        }
    }

    /// What stands in `Host`.
    fn authority(&self) -> String {
        match &self.at {
            At::Host { tls, host, port } => {
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host.clone()
                };
                match (tls, port) {
                    (false, 80) | (true, 443) => host,
                    _ => format!("{host}:{port}"),
                }
            }
            _ => "localhost".to_owned(),
        }
    }

    /// Asks for it and waits.
    ///
    /// # Errors
    /// There is no whole answer of status 200 within the time and the size that it may have.
    pub(crate) fn fetch(&self) -> Result<Vec<u8>, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.ask()).await });
        // A name that the system still looks up is not waited for.
        runtime.shutdown_background();
        answer.unwrap_or(Err(Error::TooSlow))
    }

    async fn ask(&self) -> Result<Vec<u8>, Error> {
        match &self.at {
            At::Nowhere(_) => Err(Error::Address),
            At::Host { tls: false, host, port } => self.get(connect(host, *port).await?).await,
            At::Host { tls: true, host, port } => {
                let name = ServerName::try_from(host.clone()).map_err(|_| Error::Address)?;
                let tcp = connect(host, *port).await?;
                self.get(connector()?.connect(name, tcp).await?).await
            }
            At::File(path) => self.get(UnixStream::connect(path).await?).await,
            At::Abstract(name) => {
                let name = [&b"\0"[..], name].concat();
                self.get(UnixStream::connect(OsStr::from_bytes(&name)).await?).await
            }
        }
    }

    async fn get(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Vec<u8>, Error> {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(Error::Http)?;
        let request = Request::get(self.path.as_str())
            .header(header::HOST, self.authority())
            .header(header::ACCEPT, "application/json")
            .header(header::CONNECTION, "close")
            .body(String::new())
            .map_err(|_| Error::Address)?;
        let driven = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(Error::Http)?;
        let text = whole(response).await;
        driven.abort();
        text
    }
}

fn is_socket(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Connects to the first address of a host that answers.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let found: Vec<_> = lookup_host((host, port)).await?.collect();
    let raced = dial::race(dial::alternate(&found), TcpStream::connect).await;
    let nowhere = |error: Option<io::Error>| error.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    raced.map(|(stream, _)| stream).map_err(nowhere)
}

/// The host and port of an authority. `None`: the port is no number of one.
fn host_and_port(authority: &str, default: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, "")) => (host, default),
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, default),
    };
    Some((host.trim_matches(['[', ']']).to_owned(), port))
}

fn connector() -> Result<TlsConnector, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Io(io::Error::other(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn whole(response: Response<Incoming>) -> Result<Vec<u8>, Error> {
    if response.status() != StatusCode::OK {
        return Err(Error::Status(response.status()));
    }
    let mut body = std::pin::pin!(response.into_body());
    let mut text = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(data) = frame.map_err(Error::Http)?.into_data() {
            if text.len() + data.len() > MAX_ANSWER {
                return Err(Error::TooLong);
            }
            text.extend_from_slice(&data);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn parse(text: &str) -> Option<Remote> {
        Remote::parse(Path::new(text))
    }

    #[test]
    fn names_of_files_are_no_addresses() {
        for file in [
            "config.json",
            "/etc/a:/b.json",
            "./@x:/y",
            "stdin:",
            "ftp://a/b",
            "c:/x",
            "/etc/x.json",
            "@x",
        ] {
            assert_eq!(parse(file), None, "{file}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a:/b?.json");
        std::fs::create_dir(folder.path().join("a:")).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(Remote::parse(&path), None);
    }

    #[test]
    fn plain_http_is_in_the_clear_with_other_machines() {
        for (text, wanted) in [
            ("http://a.example/c", true),
            ("http://192.0.2.1/c", true),
            ("http://localhost:1/c", false),
            ("http://127.0.0.2/c", false),
            ("http://[::1]/c", false),
            ("https://a.example/c", false),
            ("@a:/c", false),
        ] {
            assert_eq!(parse(text).unwrap().is_in_the_clear(), wanted, "{text}");
        }
    }

    #[test]
    fn a_wrong_port_is_asked_nowhere() {
        for port in ["x", "65536", "-1", "44 3"] {
            let remote = parse(&format!("https://u:secret@a.example:{port}/c?token=secret")).unwrap();
            assert_eq!(remote.name(), format!("https://a.example:{port}/c"));
            let answer = remote.fetch();
            assert!(matches!(answer, Err(Error::Address)), "{port}: {answer:?}");
        }
    }

    /// A server whose certificate nobody of this system has signed.
    #[test]
    fn a_stranger_is_not_asked() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().unwrap();
            let mut tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
            let mut asked = Vec::new();
            let _ = rustls::Stream::new(&mut tls, &mut tcp).read_to_end(&mut asked);
            asked
        });
        let answer = parse(&format!("https://127.0.0.1:{port}/?token=secret"))
            .unwrap()
            .fetch();
        let Err(Error::Io(error)) = &answer else {
            panic!("{answer:?}")
        };
        assert!(error.to_string().contains("certificate"), "{error}");
        assert_eq!(asked.join().unwrap(), b"");
    }

    #[test]
    fn addresses_are_understood_and_tokens_not_told() {
        for (text, name, path) in [
            ("http://a.example/c.json", "http://a.example/c.json", "/c.json"),
            ("HTTPS://a.example", "https://a.example/", "/"),
            ("https://a.example:8443?k=1", "https://a.example:8443/", "/?k=1"),
            ("https://a.example:#token", "https://a.example/", "/"),
            ("/absent/x.sock:/c?token=x", "/absent/x.sock:/c", "/c?token=x"),
            ("http://u:p@[::1]:81/c?token=x#y", "http://[::1]:81/c", "/c?token=x"),
            ("@name:/get-config?token=x", "@name:/get-config", "/get-config?token=x"),
            ("@@name:/c", "@name:/c", "/c"),
        ] {
            let remote = parse(text).unwrap();
            assert_eq!((remote.name().as_str(), remote.path.as_str()), (name, path), "{text}");
        }
        let Some(Remote {
            at: At::Abstract(padded),
            ..
        }) = parse("@@ab:/c")
        else {
            panic!()
        };
        assert_eq!((padded.len(), &padded[..3]), (107, &b"ab\0"[..]));
    }

    /// A server of one answer at a unix socket, and what it was asked.
    fn answered(answer: &'static [u8]) -> (Result<Vec<u8>, Error>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            let _ = stream.write_all(answer);
            String::from_utf8(head).unwrap()
        });
        let remote = parse(&format!("{}:/config?token=secret", path.display())).unwrap();
        assert!(!remote.name().contains("secret"));
        (remote.fetch(), asked.join().unwrap())
    }

    #[test]
    fn a_unix_socket_gives_one() {
        let (text, asked) =
            answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n");
        assert_eq!(text.unwrap(), b"{}");
        assert!(asked.starts_with("GET /config?token=secret HTTP/1.1\r\n"), "{asked}");
        assert!(asked.to_lowercase().contains("\r\nhost: localhost\r\n"), "{asked}");
    }

    #[test]
    fn another_answer_is_none() {
        let (text, _) = answered(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}");
        assert!(matches!(text, Err(Error::Status(StatusCode::NOT_FOUND))), "{text:?}");
        let (text, _) = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}");
        assert!(matches!(text, Err(Error::Http(_))), "{text:?}");
        let (text, _) = answered(b"SSH-2.0-x\r\n");
        assert!(matches!(text, Err(Error::Http(_))), "{text:?}");
    }

    #[test]
    fn an_answer_without_end_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
        });
        let text = parse(&format!("{}:/", path.display())).unwrap().fetch();
        assert!(matches!(text, Err(Error::TooLong)), "{text:?}");
    }
}
