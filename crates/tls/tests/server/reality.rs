//! Both ends of a connection of REALITY as pure code, with a hello like a browser's: the certificate is known by the client that it was
//! made for, and by nobody else. The server that is borrowed from is rustls.

use std::sync::Arc;

use aws_lc_rs::signature::{self, UnparsedPublicKey};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use sealway_tls::client::{Client, Judge, Shown};
use sealway_tls::codec::{ClientHello, MAX_HELLO, Message, ServerHello};
use sealway_tls::group::Group;
use sealway_tls::reality::certificate::{MLDSA65_AT, MLDSA65_LEN, ServerKey, is_for, signed};
use sealway_tls::records::Records;
use sealway_tls::server::{AwaitFinished, Lengths, Shape, answer_in_shape};
use sealway_tls::{Alert, Error, template};

use crate::common::fixed;

/// Where the public key stands, with the extension and without it.
const PUBLIC_AT: [usize; 2] = [72, 75];

/// Knows its server by what they share.
struct Knows {
    auth: [u8; 32],
    mldsa65: Option<Vec<u8>>,
}

impl Knows {
    fn public(&self, certificate: &[u8]) -> [u8; 32] {
        let at = PUBLIC_AT[usize::from(self.mldsa65.is_some())];
        certificate[at..at + 32].try_into().unwrap()
    }
}

impl Judge for Knows {
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), Error> {
        let other = Error::Certificate {
            alert: Alert::BadCertificate,
            why: "made for somebody else".into(),
        };
        let [certificate] = shown.chain else { return Err(other) };
        let public = self.public(certificate);
        if !is_for(&self.auth, &public, certificate) {
            return Err(other);
        }
        let Some(key) = &self.mldsa65 else { return Ok(()) };
        let content = signed(&self.auth, &public, shown.client_hello, shown.server_hello);
        let made = &certificate[MLDSA65_AT..MLDSA65_AT + MLDSA65_LEN];
        let key = UnparsedPublicKey::new(&signature::ML_DSA_65, key);
        key.verify(&content, made).map_err(|_| other)
    }

    fn signature(&mut self, certificate: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        assert_eq!(scheme, 0x0807);
        let key = UnparsedPublicKey::new(&signature::ED25519, self.public(certificate));
        let wrong = Error::peer(Alert::DecryptError, "the signature of the handshake is wrong");
        key.verify(message, signature).map_err(|_| wrong)
    }

    fn takes(&self, scheme: u16) -> bool {
        scheme == 0x0807
    }
}

/// The ServerHello of the server that is borrowed from.
fn borrowed(hello: &[u8]) -> Vec<u8> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let made = rcgen::CertificateParams::new(vec!["a.test".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![made.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        );
    let mut server = ServerConnection::new(Arc::new(config.unwrap())).unwrap();
    server.read_tls(&mut &*hello).unwrap();
    server.process_new_packets().unwrap();
    let mut flight = Vec::new();
    server.write_tls(&mut flight).unwrap();
    let len = usize::from(u16::from_be_bytes([flight[3], flight[4]]));
    flight[5..5 + len].to_vec()
}

/// Shakes hands over memory; the client has `theirs`, the server `ours`.
fn shake(ours: &[u8; 32], theirs: Knows, key: &ServerKey, flight: Lengths) -> Result<(Records, Records), Error> {
    let hello = template::chrome(Some("a.test"), true, &mut fixed(9))?;
    let mut client = Client::start(hello, theirs, None)?;
    let wire = client.take_output();
    let server_hello = borrowed(&wire);
    let hello = ClientHello::read(Message::first(&wire[5..], MAX_HELLO)?.unwrap())?;
    let shape = Shape {
        hello: ServerHello::read(Message::first(&server_hello, MAX_HELLO)?.unwrap())?,
        flight,
        next: &[200],
        changes: 1,
    };
    let mut out = Vec::new();
    let state = answer_in_shape(&hello, &shape, &key.for_client(ours), None, &mut fixed(3), &mut out);
    let mut state: AwaitFinished = state.unwrap();
    assert_eq!(state.agreed().group, Group::X25519MlKem768);
    let used = client.receive(&mut out, &mut fixed(4))?;
    let mut answer = client.take_output();
    let finished = client.finish().expect("through");
    let mut near = state.read(&mut answer, &mut Vec::new())?.1.expect("through").records;
    let mut far = Records::after(finished.secrets.client, finished.secrets.server, true)?;
    // What stands behind the flight carries nothing.
    let mut rest = out.split_off(used);
    let len = rest.len();
    let opened = far.open(&mut rest, 0, 0..len)?;
    assert_eq!((len, opened.consumed, opened.produced), (205, 205, 0));
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut near, &mut far];
        let mut wire = Vec::new();
        ends[from].push(23, b"payload", &mut wire)?;
        let len = wire.len();
        let opened = ends[to].open(&mut wire, 0, 0..len)?;
        assert_eq!(&wire[..opened.produced], b"payload");
    }
    Ok((near, far))
}

#[test]
fn a_client_knows_its_server_and_no_other() {
    let (auth, other) = ([1; 32], [2; 32]);
    let plain = ServerKey::new(&[5; 32], None).unwrap();
    let signing = ServerKey::new(&[5; 32], Some(&[6; 32])).unwrap();
    let forged = ServerKey::new(&[5; 32], Some(&[7; 32])).unwrap();
    let mldsa65 = signing.mldsa65_public().map(<[u8]>::to_vec);
    let knows = |auth: [u8; 32], mldsa65: &Option<Vec<u8>>| Knows {
        auth,
        mldsa65: mldsa65.clone(),
    };
    let small = Lengths::Each([64, 1500, 300, 120]);
    let large = Lengths::Each([64, 4500, 300, 120]);
    assert!(shake(&auth, knows(auth, &None), &plain, small).is_ok());
    assert!(shake(&auth, knows(auth, &None), &plain, Lengths::Together(2900)).is_ok());
    assert!(shake(&auth, knows(auth, &mldsa65), &signing, large).is_ok());
    assert!(shake(&auth, knows(auth, &mldsa65), &signing, Lengths::Together(5000)).is_ok());
    for refused in [
        shake(&auth, knows(other, &None), &plain, small),
        shake(&auth, knows(other, &mldsa65), &signing, large),
        shake(&auth, knows(auth, &mldsa65), &forged, large),
    ] {
        assert!(matches!(refused, Err(Error::Certificate { .. })));
    }
}
