//! Who sends, and who decides about it.

use std::net::SocketAddr;
use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop::names::RelPath;
use sealway_drop_transfer::dest::{Answer, Existing};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::Offered;
use sealway_drop_transfer::send::Summary;

use crate::fingerprint::Fingerprint;

/// Who sends.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it calls itself, escaped.
    pub alias: String,
    /// What kind of device it says it is, escaped.
    pub model: Option<String>,
    /// Where it is.
    pub address: SocketAddr,
    /// The certificate that it has the key of. Without, nothing shows who it is.
    pub fingerprint: Option<Fingerprint>,
    /// The name under which that certificate is remembered.
    pub remembered: Option<String>,
}

/// Who decides, and who is told. Calls may wait; none holds up anybody else but the sender.
pub trait Telling: Send + Sync + 'static {
    /// Whether to take what is offered. `Err` is a reason for this end. `cancel` is thrown when nobody waits for the answer any more.
    ///
    /// # Errors
    /// Why not.
    fn accept(&self, peer: &Peer, offer: &Offered, cancel: &Cancel) -> Result<(), String>;

    /// What to do with a file whose name is taken by something else.
    fn conflict(&self, path: &RelPath, existing: &Existing, cancel: &Cancel) -> Answer;

    /// A text came. It is as it was sent: nothing of it is escaped.
    ///
    /// # Errors
    /// Why it is not wanted.
    fn message(&self, peer: &Peer, text: &str) -> Result<(), String>;

    /// Files come.
    fn begun(&self, peer: &Peer, progress: &Arc<Progress>);

    /// No more files come.
    fn ended(&self, peer: &Peer, how: Result<Summary, sealway_drop::Error>, progress: &Progress);

    /// Somebody was turned away.
    fn turned_away(&self, peer: &str, why: &str);
}
