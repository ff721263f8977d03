//! What two ends have in common after a handshake: secrets for other parts of the application and for more connections.

pub(crate) mod slots;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sealway_aead::Suite;
use sealway_aead::derive::{Direction, Prk};
use zeroize::Zeroizing;

use crate::Error;
use crate::record::{Epochs, RecvHalf, SendHalf};
use crate::terms::Role;

pub(crate) use slots::{Slot, Slots};

/// Labels of what follows from the secret of the session.
const EXPORTER: &str = "sealway session exporter";
const CHAIN: &str = "sealway session attach chain";
const CONNECTION: &str = "sealway session connection";
const ID: &str = "sealway session id";
/// Labels of the secrets of the two directions of a connection.
const TRAFFIC_I2R: &str = "sealway session initiator to responder";
const TRAFFIC_R2I: &str = "sealway session responder to initiator";

/// A session: what the two ends of a handshake share. Clones are the same session, and every method may be called from any
/// thread.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    role: Role,
    suite: Suite,
    /// Transcript hash of the whole handshake.
    transcript: [u8; 32],
    exporter: Prk,
    id: [u8; 32],
    slots: Mutex<Slots>,
}

impl Session {
    /// The session and its first connection, from the secret and the transcript hash of a finished handshake.
    pub(crate) fn establish(
        role: Role,
        suite: Suite,
        secret: &Prk,
        transcript: [u8; 32],
    ) -> Result<(Self, SendHalf, RecvHalf), Error> {
        let mut id = [0; 32];
        secret.export(ID, &transcript, &mut id)?;
        let session = Session(Arc::new(Shared {
            role,
            suite,
            transcript,
            exporter: secret.export_prk(EXPORTER, &transcript)?,
            id,
            slots: Mutex::new(Slots::new(secret.export_prk(CHAIN, &transcript)?)),
        }));
        let connection = secret.export_prk(CONNECTION, &transcript)?;
        let (send, recv) = session.halves(&connection, 0)?;
        Ok((session, send, recv))
    }

    /// Both halves of the connection with this secret and index.
    pub(crate) fn halves(&self, connection: &Prk, index: u32) -> Result<(SendHalf, RecvHalf), Error> {
        let mut context = [0; 36];
        context[..32].copy_from_slice(&self.0.transcript);
        context[32..].copy_from_slice(&index.to_be_bytes());
        let epochs = |direction| {
            let label = match direction {
                Direction::InitiatorToResponder => TRAFFIC_I2R,
                Direction::ResponderToInitiator => TRAFFIC_R2I,
            };
            let secret = connection.export_prk(label, &context)?;
            Ok::<_, Error>(Epochs::new(secret, self.0.suite, direction, context))
        };
        let out = self.0.role.direction();
        Ok((SendHalf::new(epochs(out)?)?, RecvHalf::new(epochs(out.reverse())?)?))
    }

    /// Secret bytes for another part of the application, the same at both ends and unlike those of any other label or context.
    ///
    /// # Errors
    /// [`Error::Aead`] for a label above 255 bytes, a context above 65535 or an output above 8160.
    pub fn exporter(&self, label: &str, context: &[u8], out: &mut [u8]) -> Result<(), Error> {
        Ok(self.0.exporter.export(label, context, out)?)
    }

    /// A public name of the session, the same at both ends and different for any two handshakes. It gives nothing away.
    pub fn id(&self) -> [u8; 32] {
        self.0.id
    }

    /// This end's role in the handshake.
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// The suite of all connections of the session.
    pub fn suite(&self) -> Suite {
        self.0.suite
    }

    /// The lowest index for an extra connection above all that were used.
    pub fn next_index(&self) -> u32 {
        self.with_slots(|slots| slots.next_index())
    }

    /// What an extra connection with this index begins with, and by which a relay pairs its two ends. Without the session it
    /// cannot be told from random bytes nor from tokens of other indices.
    ///
    /// # Errors
    /// [`Error::IndexTaken`] for an index that was used or is [`crate::attach::WINDOW`] or more above the highest that was.
    pub fn token(&self, index: u32) -> Result<[u8; 32], Error> {
        self.with_slots(|slots| slots.token(index))
    }

    /// The open index of a token; `None` for one of another session and for one that was used.
    pub fn index_of(&self, token: &[u8; 32]) -> Option<u32> {
        self.with_slots(|slots| slots.find(token).ok().flatten())
    }

    pub(crate) fn with_slots<T>(&self, f: impl FnOnce(&mut Slots) -> T) -> T {
        // A thread that panicked here left whole slots behind: each step of `Slots` is done before the next begins.
        f(&mut self.0.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The halves of an extra connection. The slot is used up.
    pub(crate) fn attach(&self, slot: Slot, context: &[u8]) -> Result<(SendHalf, RecvHalf), Error> {
        let connection = slot.secret.export_prk(CONNECTION, context)?;
        self.halves(&connection, slot.index)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("role", &self.0.role)
            .field("suite", &self.0.suite)
            .finish_non_exhaustive()
    }
}

/// 32 secret bytes of an exporter, wiped when dropped.
pub(crate) fn mac(secret: &Prk, label: &str, context: &[u8]) -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut out = Zeroizing::new([0; 32]);
    secret.export(label, context, &mut *out)?;
    Ok(out)
}
