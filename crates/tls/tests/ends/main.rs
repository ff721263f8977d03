//! Our client and other people's servers in plain TLS 1.3: `rustls`, and `openssl s_server` where it is installed
//! (SEALWAY_REQUIRE_PEERS=1 makes its absence a failure).
#![allow(clippy::unwrap_used, missing_docs)]

mod openssl;
mod rustls_server;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use sealway_tls::client::{Client, Finished, Hello, Judge, Offer, Shown};
use sealway_tls::records::Records;
use sealway_tls::{Alert, Error, template};
use webpki::EndEntityCert;

/// Numbers that differ from call to call of one test, and are the same in the next run.
fn random() -> impl FnMut(&mut [u8]) {
    let mut seed = 20_u64;
    move |out| {
        for place in out {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *place = (seed >> 56) as u8;
        }
    }
}

/// Accepts one certificate, and judges signatures.
struct Pinned(Vec<u8>);

impl Judge for Pinned {
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), Error> {
        match shown.chain {
            [first] if *first == self.0 => Ok(()),
            _ => Err(Error::Certificate {
                alert: Alert::CertificateUnknown,
                why: "another one".into(),
            }),
        }
    }

    fn signature(&mut self, certificate: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        let wrong = Error::peer(Alert::DecryptError, "the signature of the handshake is wrong");
        let certificate = CertificateDer::from(certificate);
        let certificate = EndEntityCert::try_from(&certificate).map_err(|_| wrong.clone())?;
        let provider = aws_lc_rs::default_provider();
        let mut known = provider.signature_verification_algorithms.mapping.iter();
        // The first algorithm is the one of the scheme's own curve; TLS 1.3 allows no other.
        let known = known.find(|(one, _)| *one == SignatureScheme::from(scheme));
        let algorithm = known.and_then(|(_, all)| all.first()).ok_or(wrong.clone())?;
        certificate
            .verify_signature(*algorithm, message, signature)
            .map_err(|_| wrong)
    }
}

/// A certificate and its key, DER, and as PEM.
struct Identity {
    der: Vec<u8>,
    key: Vec<u8>,
    certificate_pem: String,
    key_pem: String,
}

fn identity(algorithm: &'static rcgen::SignatureAlgorithm) -> Identity {
    let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
    let made = rcgen::CertificateParams::new(vec!["a.test".into()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    Identity {
        der: made.der().to_vec(),
        key: key.serialize_der(),
        certificate_pem: made.pem(),
        key_pem: key.serialize_pem(),
    }
}

/// A connection after its handshake.
struct Connection {
    tcp: TcpStream,
    records: Records,
    received: Vec<u8>,
    payload: Vec<u8>,
    ended: bool,
}

struct Agreed {
    suite: u16,
    group: u16,
    alpn: Option<Vec<u8>>,
}

/// Shakes hands; what is read comes in pieces of this size at most.
fn connect(mut tcp: TcpStream, hello: Hello, pinned: &Identity, size: usize) -> Result<(Connection, Agreed), Error> {
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut client = Client::start(hello, Pinned(pinned.der.clone()), None)?;
    let (mut held, mut piece) = (Vec::new(), vec![0; size]);
    while !client.is_done() {
        tcp.write_all(&client.take_output()).unwrap();
        let got = tcp.read(&mut piece).unwrap();
        assert!(got > 0, "the server closed");
        held.extend_from_slice(&piece[..got]);
        let outcome = client.receive(&mut held, &mut random());
        if outcome.is_err() {
            let _ = tcp.write_all(&client.take_output());
        }
        held.drain(..outcome?);
    }
    tcp.write_all(&client.take_output()).unwrap();
    let Finished {
        secrets,
        suite,
        group,
        alpn,
        ..
    } = client.finish().unwrap();
    let records = Records::after(secrets.client, secrets.server, true)?;
    let connection = Connection {
        tcp,
        records,
        received: held,
        payload: Vec::new(),
        ended: false,
    };
    let agreed = Agreed {
        suite: suite.id(),
        group: group.id(),
        alpn,
    };
    Ok((connection, agreed))
}

impl Connection {
    fn send(&mut self, payload: &[u8]) {
        let mut out = Vec::new();
        for part in payload.chunks(1 << 14) {
            let at = out.len();
            out.resize(at + self.records.front(), 0);
            out.extend_from_slice(part);
            self.records.seal(&mut out, at).unwrap();
        }
        self.tcp.write_all(&out).unwrap();
    }

    /// Waits for this much payload, or the end.
    fn wait(&mut self, n: usize) -> Vec<u8> {
        loop {
            let mut input = self.received.clone();
            let len = input.len();
            let opened = self.records.open(&mut input, 0, 0..len).unwrap();
            self.payload.extend_from_slice(&input[..opened.produced]);
            self.received.drain(..opened.consumed);
            self.ended |= opened.end;
            let reply = std::mem::take(&mut self.records.reply);
            self.tcp.write_all(&reply).unwrap();
            if self.payload.len() >= n || self.ended {
                let n = n.min(self.payload.len());
                return self.payload.drain(..n).collect();
            }
            let mut piece = [0; 4096];
            let got = self.tcp.read(&mut piece).unwrap();
            assert!(got > 0, "closed without a word");
            self.received.extend_from_slice(&piece[..got]);
        }
    }

    fn update_keys(&mut self) {
        let mut out = Vec::new();
        self.records.key_update(&mut out, true).unwrap();
        self.tcp.write_all(&out).unwrap();
    }

    fn close(&mut self) {
        let mut out = Vec::new();
        self.records.push_close(&mut out).unwrap();
        self.tcp.write_all(&out).unwrap();
    }
}

fn plain(offer: &Offer<'_>) -> Hello {
    Hello::plain(offer, &mut random()).unwrap()
}

fn browser() -> Hello {
    template::chrome(Some("a.test"), true, &mut random()).unwrap()
}
