//! How the target goes on after a handshake: how long the records are that it sends by itself, and how many records that change
//! ciphers it takes. That is what tells programs apart, so clients and whoever watches them find the same here.
//!
//! It is found out by handshakes, now and then, for each name and each application protocol that a hello may offer.

mod tap;

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sealway_net::sock::Sock;
use sealway_tls::codec::ClientHello;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::target::Target;
use crate::Error;
use crate::log::Limit;
use crate::proxy_protocol;
use crate::random;
use crate::settings::{CipherSuite, ClientTls, ServerReality, Versions};
use crate::stats::Traffic;
use crate::tls::{build, handshake};
use tap::Tap;

/// How long the target is listened to after a handshake.
const LISTEN: Duration = Duration::from_secs(5);
/// How long a target may take to end a connection that breaks its rules.
const BREAK: Duration = Duration::from_millis(1500);
/// How long a probe may take up to the end of its handshake.
const SHAKE: Duration = Duration::from_secs(8);
/// The pause before a target is asked again that could not be asked.
const AGAIN: Duration = Duration::from_secs(30);
/// The pause before one is asked again that could be, and up to twice as much: programs are replaced by others.
const LATER: Duration = Duration::from_secs(4 * 3600);
/// How long a client waits for what is being found out.
const WAIT: Duration = Duration::from_secs(9);
/// Clients that wait for it at once. More of them are answered without.
const MAX_WAITING: usize = 256;
/// Names that are asked about. Those behind share what is found for the first.
const MAX_NAMES: usize = 32;
/// Names that are asked about at once.
const AT_ONCE: usize = 4;
/// Most records without payload that are sent behind a flight. Programs in Go end a connection that brings more than 16.
pub(super) const MAX_RECORDS: usize = 15;
/// Numbers of records that change ciphers, of which programs are known to take so many and no more.
const CHANGES: [u32; 3] = [1, 16, 32];

pub(super) use tap::is_one;

/// Lines a second about targets that cannot be asked.
static UNKNOWN: Limit = Limit::new(1);

/// What was found out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct After {
    /// Lengths of records behind the flight, with their headers, that do not wait for the client's end of the handshake.
    pub(super) before: Vec<usize>,
    /// Lengths of those that come after it.
    pub(super) records: Vec<usize>,
    /// How many records that change ciphers are taken.
    pub(super) changes: u32,
}

impl Default for After {
    /// What is sent where nothing is known.
    fn default() -> Self {
        After {
            before: Vec::new(),
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

impl Question {
    /// Keeps what was found, and says when to ask again.
    fn note(&self, found: Result<After, Error>, seen: bool) -> Duration {
        match found {
            Ok(after) => {
                tracing::debug!("REALITY: the target goes on after a handshake with {after:?}");
                self.answer.send_replace(Some(Arc::new(after)));
                let share = random::bytes::<1>().map_or(0, |[byte]| u32::from(byte));
                LATER + LATER * share / 255
            }
            Err(error) => {
                let known = self.answer.borrow().is_some();
                if let Some(kept) = UNKNOWN.pass() {
                    if seen {
                        tracing::error!(
                            "REALITY: the target leads back to this server, and nobody is served until it does not{kept}"
                        );
                    } else if !known {
                        tracing::warn!(
                            "REALITY: how the target goes on after a handshake is not known, and is not imitated: {error}{kept}"
                        );
                    }
                }
                if !known {
                    self.answer.send_replace(Some(Arc::default()));
                }
                AGAIN
            }
        }
    }
}

/// What is known of a target.
pub(super) struct Probes {
    known: HashMap<(String, Offer), watch::Receiver<Option<Arc<After>>>>,
    /// The first name, which stands in for those that are not asked about.
    first: String,
    xver: u8,
    looped: Arc<AtomicBool>,
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
            looped: Arc::default(),
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
            let (target, places, looped) = (Arc::clone(target), Arc::clone(&places), Arc::clone(&self.looped));
            let xver = self.xver;
            asking.spawn(async move {
                loop {
                    let asking = Asking {
                        xver,
                        seen: Arc::default(),
                    };
                    let found = match places.acquire().await {
                        Ok(_place) => ask(&target, &question, &asking).await,
                        Err(_) => return,
                    };
                    // A hello that came back ends there: a handshake that went well has met somebody else.
                    let seen = found.is_err() && asking.seen.load(Ordering::Relaxed);
                    if seen || found.is_ok() {
                        looped.store(seen, Ordering::Relaxed);
                    }
                    tokio::time::sleep(question.note(found, seen)).await;
                }
            });
        }
    }

    /// Whether the target was found to be this server.
    pub(super) fn loops(&self) -> bool {
        self.looped.load(Ordering::Relaxed)
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

/// What every handshake of a probe needs.
#[derive(Clone)]
struct Asking {
    xver: u8,
    /// Set when a hello of ours comes back.
    seen: Arc<AtomicBool>,
}

/// Makes the handshakes for one name and one offer.
async fn ask(target: &Target, question: &Question, asking: &Asking) -> Result<After, Error> {
    let (records, two, seventeen, many) = tokio::join!(
        listen(target, question, asking.clone()),
        surely_takes(target, question, asking.clone(), CHANGES[0] + 1),
        surely_takes(target, question, asking.clone(), CHANGES[1] + 1),
        surely_takes(target, question, asking.clone(), CHANGES[2] + 1),
    );
    let limits = CHANGES.iter().zip([two?, seventeen?, many?]);
    let limit = limits.into_iter().find(|(_, taken)| !taken).map(|(most, _)| *most);
    let [before, records] = records?;
    Ok(After {
        before,
        records,
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

/// The lengths of what the target sends by itself, before it has the client's end of the handshake and after that.
async fn listen(target: &Target, question: &Question, asking: Asking) -> Result<[Vec<usize>; 2], Error> {
    let shaking = async {
        let (tap, heard) = Tap::new(dial(target, asking.xver).await?, 1, asking.seen);
        let (config, name) = (Arc::clone(&question.config), name(question)?);
        let shaken = handshake::connect(config, name, Box::new(tap), &Traffic::default()).await?;
        Ok::<_, Error>((shaken, heard))
    };
    let shaken = timeout(SHAKE, shaking).await;
    let (mut shaken, heard) = shaken.map_err(|_| Error::TimedOut("a handshake with the target"))??;
    let until = Instant::now() + LISTEN;
    let mut piece = [0; 4096];
    let ended = loop {
        match timeout_at(until, poll_fn(|cx| shaken.carrier.poll_read(cx, &mut piece))).await {
            Err(_) => break false,
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => {}
        }
    };
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(heard.found(ended))
}

/// Whether the target takes so many records that change ciphers. A refusal counts if it comes again, and an ordinary handshake
/// goes well between: errors that pass look the same.
async fn surely_takes(target: &Target, question: &Question, asking: Asking, number: u32) -> Result<bool, Error> {
    if takes(target, question, &asking, number).await? {
        return Ok(true);
    }
    if !takes(target, question, &asking, 1).await? {
        return Err(Error::protocol(
            "TLS, as the target of REALITY,",
            "a handshake that it ends",
        ));
    }
    takes(target, question, &asking, number).await
}

/// Whether the target takes so many, by one handshake.
async fn takes(target: &Target, question: &Question, asking: &Asking, number: u32) -> Result<bool, Error> {
    let shaking = async {
        let (tap, _) = Tap::new(dial(target, asking.xver).await?, number, Arc::clone(&asking.seen));
        let (config, name) = (Arc::clone(&question.config), name(question)?);
        handshake::connect(config, name, Box::new(tap), &Traffic::default()).await
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

#[cfg(test)]
mod tests;
