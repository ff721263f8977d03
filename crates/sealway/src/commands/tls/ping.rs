//! A handshake with a server, for what can be seen of it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, Error, NamedGroup,
    ProtocolVersion, RootCertStore, SignatureScheme,
};

/// How long a server has for a connection and its handshake.
const PATIENCE: Duration = Duration::from_secs(10);
const HTTPS: u16 = 443;

/// What a server showed.
pub(crate) struct Seen {
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) suite: Option<CipherSuite>,
    pub(crate) group: Option<NamedGroup>,
    pub(crate) alpn: Option<String>,
    /// Its certificates, its own first.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    /// Whether the system's authorities vouch for it under the name that it was asked by, or why not.
    pub(crate) trust: Result<(), String>,
}

/// Why nothing was seen.
pub(crate) enum Unseen {
    /// Nothing listens there.
    Unreachable(io::Error),
    /// No handshake came about.
    Handshake(String),
}

/// A server by its name.
pub(crate) struct Server {
    /// The name, or the address where it has none.
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Server {
    /// Reads `name`, `name:port`, an address, or an address in brackets with a port.
    pub(crate) fn parse(text: &str) -> Result<Server, String> {
        let of = |name: &str, port| {
            let name = name
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .unwrap_or(name);
            Server {
                name: name.to_owned(),
                port,
            }
        };
        let server = match text.rsplit_once(':') {
            // An address of IPv6, which has no port without brackets.
            Some((name, _)) if name.contains(':') && !name.ends_with(']') => of(text, HTTPS),
            Some((name, port)) => match port.parse() {
                Ok(port) if port > 0 => of(name, port),
                _ => return Err(format!("{port:?} is no port")),
            },
            None => of(text, HTTPS),
        };
        match server.server_name() {
            Some(_) => Ok(server),
            None => Err(format!("{:?} is no name of a server", server.name)),
        }
    }

    fn server_name(&self) -> Option<ServerName<'static>> {
        ServerName::try_from(self.name.clone()).ok()
    }

    /// Its address; of several one of IPv4.
    pub(crate) fn resolve(&self) -> io::Result<IpAddr> {
        let found: Vec<_> = (self.name.as_str(), self.port).to_socket_addrs()?.collect();
        let first = found.iter().find(|one| one.is_ipv4()).or(found.first());
        let first = first.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no address"))?;
        Ok(first.ip())
    }

    /// Shakes hands with whoever is at this address. The name is shown to it, or not.
    pub(crate) fn ping(&self, ip: IpAddr, shows_name: bool) -> Result<Seen, Unseen> {
        let until = Instant::now() + PATIENCE;
        let stream =
            TcpStream::connect_timeout(&SocketAddr::new(ip, self.port), PATIENCE).map_err(Unseen::Unreachable)?;
        let failed = |error: &dyn fmt::Display| Unseen::Handshake(error.to_string());
        let witness = Arc::new(Witness::new());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&witness.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&witness) as _)
            .with_no_client_auth();
        config.enable_sni = shows_name;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = self.server_name().unwrap_or_else(|| ip.into());
        let mut tls = ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))?;
        let mut wire = Wire { stream, until };
        while tls.is_handshaking() {
            tls.complete_io(&mut wire).map_err(|error| failed(&error))?;
        }
        // Whoever is asked need not wait for more; it is no matter if he does not hear it.
        tls.send_close_notify();
        let _ = tls.write_tls(&mut wire);
        let chain = tls.peer_certificates().unwrap_or_default();
        Ok(Seen {
            version: tls.protocol_version(),
            suite: tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: tls.negotiated_key_exchange_group().map(|group| group.name()),
            alpn: tls
                .alpn_protocol()
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
            trust: witness.verdict(),
        })
    }
}

/// A socket with one deadline for all that is read and written.
struct Wire {
    stream: TcpStream,
    until: Instant,
}

impl Wire {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(late(ErrorKind::TimedOut.into())),
            left => Ok(Some(left)),
        }
    }
}

fn late(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let text = format!("the server has not ended it within {} seconds", PATIENCE.as_secs());
            io::Error::new(ErrorKind::TimedOut, text)
        }
        _ => error,
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buf).map_err(late)
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buf).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Lets every certificate pass, so that it can be seen, and notes what would have been said of it. That its key signs the handshake
/// is required of every server.
#[derive(Debug)]
struct Witness {
    provider: Arc<CryptoProvider>,
    usual: Result<Arc<WebPkiServerVerifier>, String>,
    verdict: Mutex<Result<(), String>>,
}

impl Witness {
    fn new() -> Witness {
        // What browsers offer, the hybrid first.
        let provider = Arc::new(CryptoProvider {
            kx_groups: vec![
                kx_group::X25519MLKEM768,
                kx_group::X25519,
                kx_group::SECP256R1,
                kx_group::SECP384R1,
            ],
            ..default_provider()
        });
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        Witness {
            provider,
            usual: usual.map_err(|_| "this system has no certificate authorities".to_owned()),
            verdict: Mutex::new(Err("the server has shown no certificate".to_owned())),
        }
    }

    fn verdict(&self) -> Result<(), String> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a certificate is not trusted.
fn distrust(error: &Error) -> String {
    use CertificateError::*;
    let why = match error {
        Error::InvalidCertificate(why) => why,
        other => return other.to_string(),
    };
    match why {
        UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => "certificate is valid for other names".to_owned(),
        Expired | ExpiredContext { .. } => "certificate has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "certificate is not yet valid".to_owned(),
        other => other.to_string(),
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = match &self.usual {
            Ok(usual) => usual
                .verify_server_cert(own, others, name, ocsp, now)
                .map_err(|error| distrust(&error)),
            Err(why) => Err(why.clone()),
        };
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = judged.map(drop);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn servers_are_named_with_or_without_a_port() {
        for (text, name, port) in [
            ("a.example", "a.example", 443),
            ("a.example:8443", "a.example", 8443),
            ("192.0.2.1:1", "192.0.2.1", 1),
            ("2001:db8::1", "2001:db8::1", 443),
            ("[2001:db8::1]:65535", "2001:db8::1", 65535),
            ("[2001:db8::1]", "2001:db8::1", 443),
        ] {
            let read = Server::parse(text).unwrap();
            assert_eq!((read.name.as_str(), read.port), (name, port), "{text}");
        }
        for text in [
            "",
            ":443",
            "a.example:",
            "a.example:0",
            "a.example:65536",
            "a b",
            "a.example:x",
            "[::1",
        ] {
            assert!(Server::parse(text).is_err(), "{text:?}");
        }
    }
}
