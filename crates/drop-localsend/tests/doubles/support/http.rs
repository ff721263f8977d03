//! HTTP/1.1 as the doubles speak it, by hand and over blocking sockets: nothing of it is shared with what is tested.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};
use sealway_drop_localsend::fingerprint::Fingerprint;

/// How long anything may take.
pub const LIMIT: Duration = Duration::from_secs(60);

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A certificate with its key. Not RSA, which ours is: every version of the app takes both.
pub struct Card {
    pub der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Card {
    pub fn new() -> Card {
        let made = rcgen::generate_simple_self_signed(Vec::new()).unwrap();
        Card {
            der: made.cert.der().clone(),
            key: PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
        }
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }

    pub fn server(&self, demands: bool) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match demands {
            true => builder.with_client_cert_verifier(Arc::new(Anyone)),
            false => builder.with_no_client_auth(),
        };
        Arc::new(
            builder
                .with_single_cert(vec![self.der.clone()], self.key.clone_key())
                .unwrap(),
        )
    }

    pub fn client(&self, shows: bool) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone));
        Arc::new(match shows {
            true => builder
                .with_client_auth_cert(vec![self.der.clone()], self.key.clone_key())
                .unwrap(),
            false => builder.with_no_client_auth(),
        })
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Any certificate, and in a server one there must be.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        m: &[u8],
        c: &CertificateDer<'_>,
        d: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(m, c, d, &provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        m: &[u8],
        c: &CertificateDer<'_>,
        d: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(m, c, d, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Anyone {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        m: &[u8],
        c: &CertificateDer<'_>,
        d: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, m, c, d)
    }

    fn verify_tls13_signature(
        &self,
        m: &[u8],
        c: &CertificateDer<'_>,
        d: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, m, c, d)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}

/// A request or an answer: its first line, its heads in lower case, its body.
#[derive(Debug)]
pub struct Message {
    pub line: String,
    pub heads: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn head(&self, name: &str) -> Option<&str> {
        self.heads
            .iter()
            .find(|(head, _)| head == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn status(&self) -> u16 {
        self.line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// One end of a connection.
pub struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    /// To look at, and to cut.
    pub tcp: TcpStream,
    pub certificate: Option<Fingerprint>,
}

impl Wire {
    pub fn connect(to: SocketAddr, config: Option<Arc<ClientConfig>>) -> Wire {
        let tcp = TcpStream::connect(to).unwrap();
        tcp.set_read_timeout(Some(LIMIT)).unwrap();
        let again = tcp.try_clone().unwrap();
        let stream: Box<dyn Stream> = match config {
            Some(config) => Box::new(StreamOwned::new(
                ClientConnection::new(config, to.ip().into()).unwrap(),
                tcp,
            )),
            None => Box::new(tcp),
        };
        Wire {
            stream: BufReader::new(stream),
            tcp: again,
            certificate: None,
        }
    }

    pub fn accept(mut tcp: TcpStream, config: Option<Arc<ServerConfig>>) -> Option<Wire> {
        tcp.set_read_timeout(Some(LIMIT)).unwrap();
        let again = tcp.try_clone().unwrap();
        let mut certificate = None;
        let stream: Box<dyn Stream> = match config {
            Some(config) => {
                let mut tls = ServerConnection::new(config).unwrap();
                while tls.is_handshaking() {
                    if tls.complete_io(&mut tcp).is_err() {
                        let _ = tls.complete_io(&mut tcp);
                        return None;
                    }
                }
                certificate = tls.peer_certificates().map(|chain| Fingerprint::of(&chain[0]));
                Box::new(StreamOwned::new(tls, tcp))
            }
            None => Box::new(tcp),
        };
        Some(Wire {
            stream: BufReader::new(stream),
            tcp: again,
            certificate,
        })
    }

    /// The next message; none at the end.
    pub fn read(&mut self) -> Option<Message> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let line = lines.remove(0);
        let head = |line: String| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_lowercase(), value.trim().to_owned())
        };
        let mut message = Message {
            line,
            heads: lines.into_iter().map(head).collect(),
            body: vec![],
        };
        if message.head("transfer-encoding") == Some("chunked") {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size).ok()?;
                let size = usize::from_str_radix(size.trim(), 16).ok()?;
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).ok()?;
                if size == 0 {
                    break;
                }
                message.body.extend_from_slice(&chunk[..size]);
            }
        } else if let Some(length) = message.head("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).ok()?;
            message.body = body;
        }
        Some(message)
    }

    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    pub fn answer(&mut self, status: u16, body: &str) {
        let kind = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/json\r\n"
        };
        let _ = self.write(
            format!(
                "HTTP/1.1 {status} x\r\n{kind}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        );
    }

    /// Asks with a body of known length.
    pub fn ask(&mut self, method: &str, target: &str, body: &[u8]) -> Message {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.write(&[head.as_bytes(), body].concat()).unwrap();
        self.read().expect("an answer")
    }

    /// Asks with a body in chunks, without saying how long it is. Who refuses it need not read it.
    pub fn ask_in_chunks(&mut self, target: &str, body: &[u8]) -> Message {
        let mut text = format!("POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
        for chunk in body.chunks(1000) {
            text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(b"\r\n");
            if text.len() > 64 << 10 {
                let _ = self.write(&text);
                text.clear();
            }
        }
        text.extend_from_slice(b"0\r\n\r\n");
        let _ = self.write(&text);
        self.read().expect("an answer")
    }
}
