//! This end as other devices see it: what it is called, and whom it has heard of.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sealway_drop::lock;
use tokio::sync::{Notify, watch};

use crate::calls::REGISTER;
use crate::client::{Client, refusal, whole};
use crate::devices::{Device, Devices};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::message::{Info, MAX_MESSAGE, PORT, Protocol};
use crate::stream::{PATIENCE, Place};
use crate::tls::Tls;

/// What is being sent, for a receiver that cancels it.
pub(crate) struct Sent {
    pub(crate) session: Option<String>,
    pub(crate) to: IpAddr,
    pub(crate) certificate: Option<Fingerprint>,
    pub(crate) cancelled: watch::Sender<bool>,
}

/// This end.
pub struct Node {
    pub(crate) tls: Arc<Tls>,
    info: Info,
    devices: Mutex<Devices>,
    pub(crate) changed: Notify,
    pub(crate) announce: Notify,
    pub(crate) sent: Mutex<Option<Sent>>,
    pub(crate) recent: Mutex<HashMap<(Fingerprint, IpAddr), Instant>>,
    /// What the user should know and no caller is there to be told.
    warnings: Box<dyn Fn(&str) + Send + Sync>,
}

impl Node {
    pub(crate) fn new(tls: Tls, info: Info, warnings: Box<dyn Fn(&str) + Send + Sync>) -> Node {
        Node {
            tls: Arc::new(tls),
            info,
            devices: Mutex::default(),
            changed: Notify::new(),
            announce: Notify::new(),
            sent: Mutex::new(None),
            recent: Mutex::default(),
            warnings,
        }
    }

    /// What is announced and offered with.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The certificate of this end.
    pub fn fingerprint(&self) -> Fingerprint {
        self.tls.fingerprint()
    }

    /// Whether it has its certificate the next time.
    pub fn is_kept(&self) -> bool {
        self.tls.is_kept()
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.info.port.unwrap_or(PORT)
    }

    /// The devices that were heard of.
    pub fn devices(&self) -> Vec<Device> {
        lock(&self.devices).list()
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.protocol() == Protocol::Http
    }

    /// How it speaks to a device of which nothing is known.
    pub(crate) fn protocol(&self) -> Protocol {
        self.info.protocol.unwrap_or_default()
    }

    pub(crate) fn warn(&self, text: &str) {
        (self.warnings)(text);
    }

    /// Whether a message is one of ours that came back.
    pub(crate) fn is_own(&self, info: &Info) -> bool {
        info.fingerprint.eq_ignore_ascii_case(&self.info.fingerprint)
    }

    /// Takes down a device.
    pub(crate) fn hear(&self, info: Info, from: SocketAddr, proved: Option<Fingerprint>) {
        if !self.is_own(&info) && lock(&self.devices).hear(info, from, proved, Instant::now()) {
            self.changed.notify_waiters();
        }
    }

    /// Tells a device of this end, and hears what it says of itself. It is taken down.
    ///
    /// # Errors
    /// If it cannot be reached, has another certificate, or answers nothing sensible.
    pub async fn register(&self, place: &Place, name: &str) -> Result<(Info, Option<Fingerprint>), Error> {
        if place.protocol == Protocol::Http && !self.is_clear() {
            return Err(Error::Clear);
        }
        let asking = async {
            let mut client = Client::connect(place, &self.tls, name, PATIENCE).await?;
            let answer = client.post(REGISTER, self.info.write()).await?;
            if !answer.status().is_success() {
                return Err(refusal("register", answer).await);
            }
            let body = whole(answer, MAX_MESSAGE).await?;
            let mut info = Info::read(&body).map_err(Error::malformed("an introduction"))?;
            info.port = Some(place.address.port());
            info.protocol = Some(place.protocol);
            if let Some(certificate) = client.certificate {
                // What it says of its certificate is not asked: the connection shows it.
                info.fingerprint = certificate.to_string();
            }
            Ok((info, client.certificate))
        };
        let late = || Error::network(format!("talking to {}", place.address))(io::ErrorKind::TimedOut.into());
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        let (info, certificate) = answer.unwrap_or_else(|_| Err(late()))?;
        self.hear(info.clone(), place.address, certificate);
        Ok((info, certificate))
    }
}
