//! VMess, as the client.

use sealway_v2ray::vmess::{self, CommandKey, Options, RequestRandom, Security, Session};
use sealway_v2ray::{Destination, Network, mux};

use super::{Caller, Dialer, Far, Protocol};
use crate::body::vmess::{VmessOpen, VmessSeal};
use crate::clock::Clock;
use crate::error::{Error, Pending};
use crate::random;
use crate::settings::{VmessOut, VmessSecurity};
use crate::stream::Stream;
use crate::udp::{Framed, PacketEnd};

/// A VMess server.
pub(super) struct Vmess {
    settings: VmessOut,
    key: CommandKey,
    security: Security,
    options: Options,
    dialer: Dialer,
    clock: Clock,
}

impl Vmess {
    pub(super) fn new(settings: VmessOut, dialer: Dialer, clock: Clock) -> Self {
        let auto = || match sealway_aead::choose::vmess_auto(sealway_aead::cpu::Cpu::get()) {
            sealway_aead::Suite::Aes128Gcm => Security::Aes128Gcm,
            _ => Security::ChaCha20Poly1305,
        };
        let security = match settings.security {
            VmessSecurity::Auto => auto(),
            VmessSecurity::Aes128Gcm => Security::Aes128Gcm,
            VmessSecurity::ChaCha20Poly1305 => Security::ChaCha20Poly1305,
            VmessSecurity::None | VmessSecurity::Zero => Security::None,
        };
        let mut options = security.usual_options();
        if settings.security == VmessSecurity::Zero {
            options = Options::ZERO;
        } else if settings.authenticated_length && security != Security::None {
            options = options.with(Options::AUTHENTICATED_LENGTH);
        }
        Vmess {
            key: CommandKey::new(&settings.id),
            settings,
            security,
            options,
            dialer,
            clock,
        }
    }

    /// Keys of one connection. Datagrams need chunks to be told apart, so `zero` becomes `none` for them.
    fn session(&self, network: Network) -> Result<Session, Error> {
        let options = match network {
            Network::Udp => self.options.with(Options::CHUNK_STREAM),
            Network::Tcp => self.options,
        };
        Ok(Session::new(&random::bytes()?, self.security, options, network)?)
    }

    /// The request header.
    fn header(&self, session: &Session, to: &Destination) -> Result<Vec<u8>, Error> {
        let drawn: [u8; 28] = random::bytes()?;
        let mut random = RequestRandom {
            auth: [0; 4],
            nonce: [0; 8],
            padding_len: drawn[27],
            padding: [0; 15],
        };
        random.auth.copy_from_slice(&drawn[..4]);
        random.nonce.copy_from_slice(&drawn[4..12]);
        random.padding.copy_from_slice(&drawn[12..27]);
        let request = vmess::Request {
            session: session.clone(),
            command: match mux::is_mux(to) {
                true => vmess::Command::Mux,
                false => vmess::Command::Connect(to.clone()),
            },
        };
        let mut header = Vec::new();
        request.seal(&self.key, (self.clock)(), &random, &mut header)?;
        Ok(header)
    }

    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let session = self.session(to.network)?;
        let header = self.header(&session, to)?;
        let mut stream = self.dialer.connect_with(&self.settings.server, header, caller).await?;
        if let Some(sealer) = VmessSeal::request(&session, !self.settings.no_end, !stream.has_tls())? {
            stream.set_sealer(Box::new(sealer));
        }
        stream.set_opener(Box::new(VmessOpen::response(session)?));
        Ok(stream)
    }
}

impl Protocol for Vmess {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Stream(Box::new(self.stream(to, caller).await?))) })
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async { Ok(Framed::vmess(self.stream(to, caller).await?, to.clone()) as Box<dyn PacketEnd>) })
    }
}
