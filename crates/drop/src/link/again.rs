//! Coming together again after the connections of a session were lost.
//!
//! From a session that stands both ends draw a name and a pair of static keys each, which nobody else can know. With them they
//! make fresh sessions, each with ephemeral keys of its own, for as long as both programs run; nothing of it is written to a
//! disk. So a code that was used once is never used again, and whoever comes back is the end that was there before.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use sealway_session::Session;
use sealway_session::handshake::{Role, StaticKey};
use zeroize::Zeroizing;

use super::connect::{Connected, DataConnections, Origin};
use super::establish::{AGAIN, Deadline, Identity, PATIENCE, Peered, Setup, handshake};
use super::{race, socket};
use crate::cancel::Cancel;
use crate::{Error, relay};

/// Bytes of the name under which an end comes back.
pub(super) const NAME_LEN: usize = 32;

/// Label of everything that is drawn from the session.
const LABEL: &str = "sealway drop again";

/// Where an end that is not waited for at a port finds the other one again.
#[derive(Clone, Debug)]
pub enum Path {
    /// At one of these addresses.
    Dial(Vec<SocketAddr>),
    /// At this relay, `host:port`.
    Relay(String),
}

/// What the two ends of a session need to come together again.
#[derive(Clone)]
pub struct Again {
    role: Role,
    name: [u8; NAME_LEN],
    token: [u8; 32],
    /// With the keys that only these two ends have.
    pub(super) setup: Setup,
    /// With the keys that the ends have had from the beginning, if that is how they know each other.
    keys: Option<Setup>,
}

impl Again {
    /// Of a session that was made with `setup`.
    ///
    /// # Errors
    /// None for what sessions give out; it is theirs to say.
    pub fn of(peered: &Peered, setup: &Setup) -> Result<Self, Error> {
        let session: &Session = &peered.session;
        let drawn = |context: &[u8]| -> Result<Zeroizing<[u8; 32]>, Error> {
            let mut out = Zeroizing::new([0; 32]);
            session.exporter(LABEL, context, &mut *out)?;
            Ok(out)
        };
        let role = session.role();
        let (mut own, mut peer) = (drawn(b"initiator")?, drawn(b"responder")?);
        if role == Role::Responder {
            std::mem::swap(&mut own, &mut peer);
        }
        let of = |own, peer| Setup {
            identity: Identity::Keys {
                own,
                peers: Some(vec![peer]),
            },
            ..setup.clone()
        };
        let peer = *StaticKey::from_bytes(&peer).public();
        let keys = match (&setup.identity, peered.peer_key) {
            (Identity::Keys { own, .. }, Some(peer)) => Some(of(own.clone(), peer)),
            _ => None,
        };
        Ok(Self {
            role,
            name: *drawn(b"name")?,
            token: *drawn(b"relay")?,
            setup: of(own, peer),
            keys,
        })
    }

    /// The name under which an end comes back.
    pub(super) fn name(&self) -> &[u8; NAME_LEN] {
        &self.name
    }

    /// One try to come together again. `anew` takes the keys that the ends have had from the beginning, where they have some: so an end is
    /// found again whose program was started again. It is then a session like the first.
    ///
    /// # Errors
    /// As [`super::connect`].
    pub fn meet(&self, path: &Path, anew: bool, cancel: &Cancel) -> Result<Connected, Error> {
        let (peered, way) = match path {
            Path::Dial(addresses) => match self.keys.as_ref().filter(|_| anew) {
                Some(keys) => {
                    let (peered, address) = race::reach(addresses, Instant::now(), keys, cancel)?;
                    (peered, Origin::Dial(address))
                }
                None => self.dial(addresses, cancel)?,
            },
            Path::Relay(address) => {
                let stream = relay::pair(address, &self.token, self.role, &|| cancel.is_set())?;
                socket::prepare(&stream).map_err(Error::network("the relay"))?;
                (
                    self.shake(stream, self.role, cancel)?,
                    Origin::Relay(address.clone(), self.role),
                )
            }
        };
        // Whoever talks on it says why it ends.
        peered.connection.release();
        Ok(Connected {
            data: DataConnections::new(peered.session.clone(), way, 1),
            peered,
        })
    }

    /// One address after the other: it is one end, and has one session with this one.
    fn dial(&self, addresses: &[SocketAddr], cancel: &Cancel) -> Result<(Peered, Origin), Error> {
        let mut failed = Error::Protocol("there is no address to try");
        for &address in addresses {
            match self.dial_one(address, cancel) {
                Ok(peered) => return Ok((peered, Origin::Dial(address))),
                Err(error) => failed = error,
            }
            if cancel.is_set() {
                return Err(Error::Cancelled);
            }
        }
        Err(failed)
    }

    fn dial_one(&self, address: SocketAddr, cancel: &Cancel) -> Result<Peered, Error> {
        let mut stream = socket::dial(address, &|| cancel.is_set())?;
        let mut greeting = [AGAIN; 1 + NAME_LEN];
        greeting[1..].copy_from_slice(&self.name);
        stream.write_all(&greeting).map_err(Error::network("the handshake"))?;
        self.shake(stream, Role::Initiator, cancel)
    }

    /// Whether `meet` can also begin anew.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// The handshake of an end that came back.
    pub(super) fn shake(&self, stream: TcpStream, role: Role, cancel: &Cancel) -> Result<Peered, Error> {
        handshake(stream, &self.setup, role, Deadline::after(PATIENCE), cancel, &|_| true)
    }
}
