//! How the target goes on after a handshake: how long the records are that it sends by itself, and how many records that change
//! ciphers it takes. That is what tells programs apart, so clients and whoever watches them find the same here.
//!
//! It is found out by handshakes, once for each name and each application protocol that a hello may offer.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sealway_net::sock::Sock;
use sealway_tls::codec::{ClientHello, record};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::target::Target;
use crate::Error;
use crate::carrier::{Carrier, Virtual};
use crate::log::Limit;
use crate::proxy_protocol;
use crate::settings::{CipherSuite, ClientTls, ServerReality, Versions};
use crate::stats::Traffic;
use crate::tls::{build, handshake};

/// How long the target is listened to after a handshake.
const LISTEN: Duration = Duration::from_secs(5);
/// How long a target may take to end a connection that breaks its rules.
const BREAK: Duration = Duration::from_millis(1500);
/// How long a probe may take up to the end of its handshake.
const SHAKE: Duration = Duration::from_secs(8);
/// The pause before a target is asked again that could not be asked.
const AGAIN: Duration = Duration::from_secs(30);
/// How long a client waits for what is being found out.
const WAIT: Duration = Duration::from_secs(6);
/// Clients that wait for it at once. More of them are answered without.
const MAX_WAITING: usize = 256;
/// Names that are asked about. Those behind share what is found for the first.
const MAX_NAMES: usize = 32;
/// Names that are asked about at once.
const AT_ONCE: usize = 4;
/// Most records that are sent after a handshake, and the longest of them.
const MAX_RECORDS: usize = 16;
const LONGEST: usize = 16 << 10;
/// Numbers of records that change ciphers, of which programs are known to take so many and no more.
const CHANGES: [u32; 3] = [1, 16, 32];
/// A sealed alert, which ends a connection and is not what it goes on with.
const SEALED_ALERT: usize = record::HEAD + 2 + 1 + 16;

/// Lines a second about targets that cannot be asked.
static UNKNOWN: Limit = Limit::new(1);

/// What was found out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct After {
    /// Lengths of records, with their headers.
    pub(super) records: Vec<usize>,
    /// How many records that change ciphers are taken.
    pub(super) changes: u32,
}

impl Default for After {
    /// What is sent where nothing is known.
    fn default() -> Self {
        After {
            records: Vec::new(),
            changes: 32,
        }
    }
}

/// What a hello offers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Offer {
    Nothing,
    Http1,
    Http2,
}

impl Offer {
    const ALL: [Offer; 3] = [Offer::Http2, Offer::Http1, Offer::Nothing];

    fn of(hello: &ClientHello<'_>) -> Offer {
        let names = hello.extensions.alpn().ok().flatten().unwrap_or_default();
        if names.contains(&&b"h2"[..]) {
            Offer::Http2
        } else if names.is_empty() {
            Offer::Nothing
        } else {
            Offer::Http1
        }
    }

    fn names(self) -> Vec<String> {
        let names: &[&str] = match self {
            Offer::Nothing => &[],
            Offer::Http1 => &["http/1.1"],
            Offer::Http2 => &["h2", "http/1.1"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// One handshake to make.
struct Question {
    name: String,
    config: Arc<ClientConfig>,
    answer: watch::Sender<Option<Arc<After>>>,
}

/// What is known of a target.
pub(super) struct Probes {
    known: HashMap<(String, Offer), watch::Receiver<Option<Arc<After>>>>,
    /// The first name, which stands in for those that are not asked about.
    first: String,
    xver: u8,
    questions: Mutex<Vec<Question>>,
    asking: Mutex<JoinSet<()>>,
    waiting: Semaphore,
}

impl Probes {
    pub(super) fn new(place: &str, settings: &ServerReality) -> Result<Self, Error> {
        let (mut known, mut questions) = (HashMap::new(), Vec::new());
        for offer in Offer::ALL {
            let tls = ClientTls {
                alpn: offer.names(),
                versions: Versions {
                    tls12: false,
                    tls13: true,
                },
                // As browsers order them: tickets are longer where the hash of the suite is.
                cipher_suites: vec![
                    CipherSuite::Tls13Aes128Gcm,
                    CipherSuite::Tls13Aes256Gcm,
                    CipherSuite::Tls13Chacha20Poly1305,
                ],
                // It is not trusted with anything: whoever stands there is what strangers see.
                allow_insecure: true,
                // Servers give tickets to those only who could use them.
                resumption: true,
                ..ClientTls::default()
            };
            let config = build::client(place, &tls)?;
            for name in settings.server_names.iter().take(MAX_NAMES) {
                let (answer, receiver) = watch::channel(None);
                known.insert((name.clone(), offer), receiver);
                questions.push(Question {
                    name: name.clone(),
                    config: Arc::clone(&config),
                    answer,
                });
            }
        }
        Ok(Probes {
            known,
            first: settings.server_names.first().cloned().unwrap_or_default(),
            xver: settings.xver,
            questions: Mutex::new(questions),
            asking: Mutex::default(),
            waiting: Semaphore::new(MAX_WAITING),
        })
    }

    /// Begins to ask, until everything is known or this is dropped.
    pub(super) fn begin(&self, target: &Arc<Target>) {
        let questions = std::mem::take(&mut *self.questions.lock().unwrap_or_else(PoisonError::into_inner));
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        for question in questions {
            let (target, places, xver) = (Arc::clone(target), Arc::clone(&places), self.xver);
            asking.spawn(async move {
                loop {
                    let found = match places.acquire().await {
                        Ok(_place) => ask(&target, &question, xver).await,
                        Err(_) => return,
                    };
                    match found {
                        Ok(after) => {
                            tracing::debug!("REALITY: the target goes on after a handshake with {after:?}");
                            question.answer.send_replace(Some(Arc::new(after)));
                            return;
                        }
                        Err(error) => {
                            if let Some(kept) = UNKNOWN.pass() {
                                tracing::warn!(
                                    "REALITY: how the target goes on after a handshake is not known, and is not imitated: {error}{kept}"
                                );
                            }
                            question.answer.send_replace(Some(Arc::default()));
                            tokio::time::sleep(AGAIN).await;
                        }
                    }
                }
            });
        }
    }

    /// What a client with this hello is to find, as far as it is known within `wait` and [`WAIT`].
    pub(super) async fn of(&self, hello: &ClientHello<'_>, wait: Duration) -> Arc<After> {
        let name = hello.extensions.server_name().ok().flatten().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let offer = Offer::of(hello);
        let known = self.known.get(&(name, offer));
        let Some(known) = known.or_else(|| self.known.get(&(self.first.clone(), offer))) else {
            return Arc::default();
        };
        if let Some(after) = &*known.borrow() {
            return Arc::clone(after);
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return Arc::default();
        };
        let mut known = known.clone();
        match timeout(WAIT.min(wait), known.wait_for(Option::is_some)).await {
            Ok(Ok(after)) => after.clone().unwrap_or_default(),
            _ => Arc::default(),
        }
    }
}

/// Makes the handshakes for one name and one offer.
async fn ask(target: &Target, question: &Question, xver: u8) -> Result<After, Error> {
    let (records, two, seventeen, many) = tokio::join!(
        listen(target, question, xver),
        takes(target, question, xver, CHANGES[0] + 1),
        takes(target, question, xver, CHANGES[1] + 1),
        takes(target, question, xver, CHANGES[2] + 1),
    );
    let limits = CHANGES.iter().zip([two?, seventeen?, many?]);
    let limit = limits.into_iter().find(|(_, taken)| !taken).map(|(most, _)| *most);
    Ok(After {
        records: records?,
        changes: limit.unwrap_or(u32::MAX),
    })
}

async fn dial(target: &Target, xver: u8) -> Result<Sock, Error> {
    let mut sock = target.dial(None).await?;
    if xver > 0 {
        proxy_protocol::write(&mut sock, xver, None, None).await?;
    }
    Ok(sock)
}

/// The name to ask for. An address is not sent, so it stands for none.
fn name(question: &Question) -> Result<ServerName<'static>, Error> {
    match question.name.as_str() {
        "" => Ok(ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into())),
        name => build::server_name("realitySettings.serverNames", name),
    }
}

/// The lengths of what the target sends by itself after a handshake.
async fn listen(target: &Target, question: &Question, xver: u8) -> Result<Vec<usize>, Error> {
    let shaking = async {
        let sock = dial(target, xver).await?;
        handshake::connect(Arc::clone(&question.config), name(question)?, sock, &Traffic::default()).await
    };
    let shaken = timeout(SHAKE, shaking).await;
    let mut shaken = shaken.map_err(|_| Error::TimedOut("a handshake with the target"))??;
    let until = Instant::now() + LISTEN;
    let mut lengths = Lengths::default();
    lengths.push(&shaken.received);
    let mut piece = [0; 4096];
    loop {
        match timeout_at(until, poll_fn(|cx| shaken.carrier.poll_read(cx, &mut piece))).await {
            Err(_) => break,
            Ok(Ok(0) | Err(_)) => {
                lengths.ended();
                break;
            }
            Ok(Ok(got)) => lengths.push(&piece[..got]),
        }
    }
    Ok(lengths.all)
}

/// Lengths of records as they come, without what is in them.
#[derive(Default)]
struct Lengths {
    all: Vec<usize>,
    head: Vec<u8>,
    /// Bytes of a record that are still to come.
    left: usize,
}

impl Lengths {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.all.len() < MAX_RECORDS {
            let skip = self.left.min(bytes.len());
            self.left -= skip;
            bytes = &bytes[skip..];
            let take = (record::HEAD - self.head.len()).min(bytes.len());
            if self.left > 0 || take == 0 {
                return;
            }
            self.head.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if let [kind, _, _, high, low] = *self.head.as_slice() {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                // Less than this cannot be sealed.
                if kind == record::APPLICATION && (17..=LONGEST).contains(&self.left) {
                    self.all.push(record::HEAD + self.left);
                }
                self.head.clear();
            }
        }
    }

    /// The connection has ended: an alert before that is not what others see.
    fn ended(&mut self) {
        if self.all.last() == Some(&SEALED_ALERT) {
            self.all.pop();
        }
    }
}

/// Whether the target takes so many records that change ciphers.
async fn takes(target: &Target, question: &Question, xver: u8, number: u32) -> Result<bool, Error> {
    let shaking = async {
        let sock = dial(target, xver).await?;
        // The library adds one of its own.
        let carrier = Box::new(Changing {
            below: sock.into(),
            writes: 0,
            changes: [20, 3, 3, 0, 1, 1].repeat(number.saturating_sub(1) as usize),
        });
        handshake::connect(
            Arc::clone(&question.config),
            name(question)?,
            carrier,
            &Traffic::default(),
        )
        .await
    };
    let shaken = match timeout(SHAKE, shaking).await {
        Err(_) => return Err(Error::TimedOut("a handshake with the target")),
        // It may be refused before the handshake is through.
        Ok(Err(Error::Io(_) | Error::Closed | Error::Tls(rustls::Error::AlertReceived(_)))) => return Ok(false),
        Ok(shaken) => shaken,
    };
    let mut shaken = shaken?;
    let until = Instant::now() + BREAK;
    let mut piece = [0; 4096];
    loop {
        match timeout_at(until, poll_fn(|cx| shaken.carrier.poll_read(cx, &mut piece))).await {
            Err(_) => return Ok(true),
            Ok(Ok(0) | Err(_)) => return Ok(false),
            Ok(Ok(_)) => {}
        }
    }
}

/// A connection that says before the second flight that ciphers change, as often as it is told.
struct Changing {
    below: Carrier,
    writes: u32,
    changes: Vec<u8>,
}

impl Virtual for Changing {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below.poll_read_ready(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.writes = self.writes.max(1);
        self.below.poll_read(cx, into)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        while self.writes > 0 && !self.changes.is_empty() {
            let wrote = ready!(self.below.poll_write(cx, &self.changes))?;
            self.changes.drain(..wrote);
        }
        self.below.poll_write(cx, from)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below.poll_shutdown(cx)
    }

    fn reset_on_close(&mut self) {
        self.below.reset_on_close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_records_are_found_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        for len in [250, 17, 100] {
            record::write(&mut bytes, record::APPLICATION, 3, &vec![0; len]);
        }
        record::write(&mut bytes, record::CHANGE_CIPHER_SPEC, 3, &[1]);
        record::write(&mut bytes, record::APPLICATION, 3, &[0; 19]);
        for step in 1..=bytes.len() {
            let mut lengths = Lengths::default();
            bytes.chunks(step).for_each(|piece| lengths.push(piece));
            assert_eq!(lengths.all, [255, 22, 105, 24], "{step}");
            lengths.ended();
            assert_eq!(lengths.all, [255, 22, 105]);
        }
        let mut many = Lengths::default();
        many.push(&bytes.repeat(100));
        assert_eq!(many.all.len(), MAX_RECORDS);
    }
}
