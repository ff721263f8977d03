//! A server of ours, and what its clients need to trust it.

use std::sync::Arc;

use sealway_tls::Error;
use sealway_tls::codec::{ClientHello, Numbers};
use sealway_tls::records::Records;
use sealway_tls::server::{Config, Connected, Ed25519, Identity, Server};

/// Random bytes that are always the same.
pub(crate) fn fixed(mut byte: u8) -> impl FnMut(&mut [u8]) {
    move |out| {
        for place in out {
            byte = byte.wrapping_mul(109).wrapping_add(89);
            *place = byte;
        }
    }
}

/// A certificate for `server.example`, and who has its key.
pub(crate) struct Made {
    pub(crate) der: Vec<u8>,
    pub(crate) pem: String,
    pub(crate) identity: Arc<dyn Identity>,
}

/// One with a key of Ed25519.
pub(crate) fn ed25519() -> Made {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let made = params().self_signed(&key).unwrap();
    // PKCS#8 of Ed25519 (RFC 8410) has the 32 bytes behind a head of 16.
    let seed = key.serialize_der()[16..48].try_into().unwrap();
    Made {
        der: made.der().to_vec(),
        pem: made.pem(),
        identity: Arc::new(Ed25519::new(vec![made.der().to_vec()], &seed).unwrap()),
    }
}

/// One with a key of ECDSA, which a callback of the caller's signs with.
pub(crate) fn ecdsa() -> Made {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let made = params().self_signed(&key).unwrap();
    Made {
        der: made.der().to_vec(),
        pem: made.pem(),
        identity: Arc::new(Ecdsa {
            chain: vec![made.der().to_vec()],
            key,
        }),
    }
}

fn params() -> rcgen::CertificateParams {
    rcgen::CertificateParams::new(vec!["server.example".to_owned(), "127.0.0.1".to_owned()]).unwrap()
}

struct Ecdsa {
    chain: Vec<Vec<u8>>,
    key: rcgen::KeyPair,
}

impl Identity for Ecdsa {
    fn certificates(&self, _: &ClientHello<'_>, _: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.chain.clone())
    }

    fn sign(&self, offered: Numbers<'_>, content: &[u8]) -> Result<(u16, Vec<u8>), Error> {
        assert!(offered.contains(0x0403));
        let signature = rcgen::SigningKey::sign(&self.key, content);
        Ok((0x0403, signature.map_err(|_| Error::Library("no signature"))?))
    }
}

/// A connection of the server's: the handshake, and then records, over bytes that somebody else moves.
pub(crate) struct End {
    server: Option<Server>,
    pub(crate) connected: Option<Connected>,
    input: Vec<u8>,
    pub(crate) random: Box<dyn FnMut(&mut [u8])>,
    /// What is to be sent.
    pub(crate) out: Vec<u8>,
    /// Payload that came.
    pub(crate) got: Vec<u8>,
    pub(crate) closed: bool,
}

impl End {
    pub(crate) fn new(config: Config) -> End {
        End {
            server: Some(Server::new(Arc::new(config))),
            connected: None,
            input: Vec::new(),
            random: Box::new(fixed(1)),
            out: Vec::new(),
            got: Vec::new(),
            closed: false,
        }
    }

    /// Takes bytes of the client, in pieces of at most `step`.
    pub(crate) fn take(&mut self, bytes: &[u8], step: usize) -> Result<(), Error> {
        for piece in bytes.chunks(step) {
            self.input.extend_from_slice(piece);
            self.go()?;
        }
        Ok(())
    }

    fn go(&mut self) -> Result<(), Error> {
        if let Some(server) = &mut self.server {
            let used = server.read(&mut self.input, &mut self.random, &mut self.out)?;
            self.input.drain(..used);
        }
        if self.server.as_ref().is_some_and(Server::is_done) {
            self.connected = self.server.take().map(|server| server.finish().unwrap());
        }
        let Some(Connected { records, .. }) = &mut self.connected else {
            return Ok(());
        };
        let len = self.input.len();
        let opened = records.open(&mut self.input, 0, 0..len)?;
        self.got.extend_from_slice(&self.input[..opened.produced]);
        self.input.drain(..opened.consumed);
        self.closed |= opened.end;
        self.out.append(&mut records.reply);
        Ok(())
    }

    pub(crate) fn records(&mut self) -> &mut Records {
        &mut self.connected.as_mut().expect("the handshake is through").records
    }

    pub(crate) fn say(&mut self, payload: &[u8]) {
        for part in payload.chunks(16_384) {
            let at = self.out.len();
            let records = &mut self.connected.as_mut().unwrap().records;
            self.out.resize(at + records.front(), 0);
            self.out.extend_from_slice(part);
            records.seal(&mut self.out, at).unwrap();
        }
    }

    pub(crate) fn close(&mut self) {
        let records = &mut self.connected.as_mut().unwrap().records;
        records.push_close(&mut self.out).unwrap();
    }
}
