//! The receiving role: offers are put to a person, files come into a folder.

mod telling;

pub use telling::{Peer, Telling};

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use sealway_drop::cancel::Cancel;
use sealway_drop::lock;
use sealway_drop::names::{Escaped, RelPath};
use sealway_drop_transfer::dest::{Destination, Existing};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::Offered;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::calls::{Answer, BodyError, body, empty, failed, json_bytes};
use crate::client::farewell;
use crate::error::Error;
use crate::favourites::{Favourite, Favourites};
use crate::landing::{Failed, Landing, Plan, Wanted};
use crate::message::{Accepted, Files, MAX_OFFER, Offer};
use crate::pin::{Pin, Verdict};
use crate::query::Query;
use crate::session::{Cancelled, Outcome, Slot, Who};
use crate::stream::Place;
use crate::tls::Tls;

/// Offers that are read at a time: each may be [`MAX_OFFER`] long.
const READING: usize = 2;
/// How long an offer may take to come.
const OFFER: Duration = Duration::from_secs(60);
/// How often is looked whether a session is over.
const TICK: Duration = Duration::from_secs(1);

/// What receives.
pub struct Receiver {
    destination: Destination,
    favourites: Option<Favourites>,
    telling: Arc<dyn Telling>,
    pin: Mutex<Pin>,
    slot: Mutex<Slot>,
    active: Mutex<Option<Arc<Active>>>,
    reading: Semaphore,
    question: Mutex<Cancel>,
}

/// A session.
struct Active {
    id: String,
    peer: Peer,
    /// Where the sender listens, to be told if this end cancels.
    reach: Option<Place>,
    landing: Landing,
    wanted: HashMap<String, Wanted>,
    placed: Mutex<HashSet<String>>,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Complete,
    CancelledThere,
    CancelledHere,
    Silent,
}

impl Receiver {
    /// Receives into a folder. A sender must know the PIN, if there is one.
    pub fn new(
        destination: Destination,
        favourites: Option<Favourites>,
        pin: Option<Zeroizing<String>>,
        telling: Arc<dyn Telling>,
    ) -> Receiver {
        Receiver {
            destination,
            favourites,
            telling,
            pin: Mutex::new(Pin::new(pin)),
            slot: Mutex::default(),
            active: Mutex::new(None),
            reading: Semaphore::new(READING),
            question: Mutex::default(),
        }
    }

    /// Ends sessions whose senders are gone.
    pub(crate) async fn watch(receiver: Weak<Receiver>, tls: Arc<Tls>) {
        loop {
            tokio::time::sleep(TICK).await;
            let Some(receiver) = receiver.upgrade() else {
                return;
            };
            if lock(&receiver.slot).expire(Instant::now()) {
                receiver.end(&tls, End::Silent).await;
            }
        }
    }

    /// Ends whatever is under way: this end stops.
    pub(crate) async fn stop(self: &Arc<Self>, tls: &Tls) {
        lock(&self.slot).clear();
        lock(&self.question).cancel();
        self.end(tls, End::CancelledHere).await;
    }

    /// Answers an offer.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        request: Request<Incoming>,
        who: Who,
        from: SocketAddr,
        query: Query,
        gone: &Cancel,
    ) -> Answer {
        match lock(&self.pin).judge(query.pin.as_deref(), who.address, who.certificate) {
            Verdict::Right => {}
            Verdict::Missing => return failed(StatusCode::UNAUTHORIZED, "PIN required"),
            Verdict::Wrong => return failed(StatusCode::UNAUTHORIZED, "Invalid PIN"),
            Verdict::Locked => return failed(StatusCode::TOO_MANY_REQUESTS, "Too many attempts"),
        }
        let busy = || failed(StatusCode::CONFLICT, "Blocked by another session");
        // Before much is read of somebody who has to wait anyway.
        let Ok(_turn) = self.reading.try_acquire() else {
            return busy();
        };
        if lock(&self.slot).is_taken() {
            return busy();
        }
        let malformed = || failed(StatusCode::BAD_REQUEST, "Request body malformed");
        let Ok(read) = tokio::time::timeout(OFFER, body(request.into_body(), MAX_OFFER)).await else {
            return malformed();
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(BodyError::Long) => return failed(StatusCode::PAYLOAD_TOO_LARGE, "Too many files at once"),
            Err(BodyError::Lost) => return malformed(),
        };
        let Ok(offer) = Offer::read(&bytes) else {
            return malformed();
        };
        drop(bytes);
        if offer.files.0.is_empty() {
            return failed(StatusCode::BAD_REQUEST, "Request must contain at least one file");
        }
        let peer = match self.recognise(&offer, who, from) {
            Ok(peer) => peer,
            Err(why) => {
                self.telling.turned_away(&shown(&offer, from), &why);
                return failed(StatusCode::FORBIDDEN, "Rejected");
            }
        };
        if let Some(text) = offer.message() {
            let (telling, text) = (self.telling.clone(), text.to_owned());
            let told = tokio::task::spawn_blocking(move || telling.message(&peer, &text)).await;
            return match told {
                Ok(Ok(())) => empty(StatusCode::NO_CONTENT),
                _ => failed(StatusCode::FORBIDDEN, "Rejected"),
            };
        }
        let Ok(number) = lock(&self.slot).ask(who) else {
            return busy();
        };
        // Whoever waits no more, whatever for, gives the slot back.
        let question = Question {
            receiver: self.clone(),
            number,
            cancel: Cancel::new(),
        };
        let cancel = question.cancel.clone();
        *lock(&self.question) = cancel.clone();
        let also = cancel.clone();
        let _gone = gone.on_cancel(move || also.cancel());
        let reach = reach(&offer, who, from);
        let deciding = {
            let receiver = self.clone();
            tokio::task::spawn_blocking(move || receiver.decide(number, peer, reach, offer, &cancel))
        };
        let answer = deciding.await.unwrap_or(Decided::Failed);
        drop(question);
        match answer {
            Decided::Accepted(accepted) => json_bytes(serde_json::to_vec(&accepted).unwrap_or_default()),
            Decided::Nothing => empty(StatusCode::NO_CONTENT),
            Decided::Declined => failed(StatusCode::FORBIDDEN, "Rejected"),
            Decided::NoRoom => failed(StatusCode::INSUFFICIENT_STORAGE, "Not enough space"),
            Decided::Failed => failed(StatusCode::INTERNAL_SERVER_ERROR, "The files cannot be received"),
        }
    }

    /// Who it is. One who has the name of a device that is remembered and not its certificate is somebody else.
    fn recognise(&self, offer: &Offer, who: Who, from: SocketAddr) -> Result<Peer, String> {
        let known = match &self.favourites {
            Some(favourites) => favourites.list().map_err(|error| error.to_string())?,
            None => vec![],
        };
        let named = |one: &&Favourite| one.name.to_lowercase() == offer.info.alias.to_lowercase();
        let remembered = known.iter().find(|one| Some(one.fingerprint) == who.certificate);
        if remembered.is_none()
            && let Some(other) = known.iter().find(named)
        {
            return Err(Error::OtherCertificate {
                name: Escaped(other.name.as_bytes()).to_string(),
                expected: other.fingerprint,
                found: who.certificate,
            }
            .to_string());
        }
        Ok(Peer {
            alias: offer.info.shown(),
            model: offer
                .info
                .device_model
                .as_ref()
                .map(|model| Escaped(model.as_bytes()).to_string()),
            address: from,
            fingerprint: who.certificate,
            remembered: remembered.map(|one| Escaped(one.name.as_bytes()).to_string()),
        })
    }

    /// Has a person decide, and makes ready for what is to come.
    fn decide(&self, number: u64, peer: Peer, reach: Option<Place>, offer: Offer, cancel: &Cancel) -> Decided {
        let plan = Plan::of(&offer.files.0, self.destination.options().rules);
        drop(offer);
        if plan.is_empty() {
            self.telling
                .turned_away(&peer.alias, "none of the names that it offers can be received");
            return Decided::Failed;
        }
        let offered = Offered::of_entries(&plan.entries, self.destination.available().ok());
        if let Err(why) = self.telling.accept(&peer, &offered, cancel) {
            if !cancel.is_set() {
                self.telling.turned_away(&peer.alias, &why);
            }
            return Decided::Declined;
        }
        let progress = Arc::new(Progress::new());
        let ended = |how| self.telling.ended(&peer, how, &progress);
        let conflicts = |path: &RelPath, existing: &Existing| self.telling.conflict(path, existing, cancel);
        let begun = Landing::begin(&self.destination, plan, progress.clone(), &conflicts, cancel);
        let (landing, wanted) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                ended(Err(error));
                return Decided::Failed;
            }
        };
        if wanted.is_empty() {
            ended(landing.conclude(std::iter::empty(), ""));
            return Decided::Nothing;
        }
        let needed = wanted.values().map(|one| one.entry.size()).fold(0, u64::saturating_add);
        if offered.free.is_some_and(|free| needed > free) {
            let _ = landing.conclude(std::iter::empty(), "");
            self.telling
                .turned_away(&peer.alias, "there is not enough space for what it offers");
            return Decided::NoRoom;
        }
        let Some(id) = random() else {
            return Decided::Failed;
        };
        let mut tokens = Vec::with_capacity(wanted.len());
        for file in wanted.keys() {
            let Some(token) = random() else {
                return Decided::Failed;
            };
            tokens.push((file.clone(), token));
        }
        let active = Arc::new(Active {
            id: id.clone(),
            peer,
            reach,
            landing,
            wanted,
            placed: Mutex::default(),
        });
        {
            let mut slot = lock(&self.slot);
            if !slot.open(number, id.clone(), tokens.clone(), Instant::now()) {
                drop(slot);
                let how = active
                    .landing
                    .conclude(active.wanted.values(), "cancelled")
                    .and(Err(Error::CancelledThere.into()));
                self.telling.ended(&active.peer, how, &active.landing.progress);
                return Decided::Declined;
            }
            *lock(&self.active) = Some(active.clone());
        }
        self.telling.begun(&active.peer, &active.landing.progress);
        Decided::Accepted(Accepted {
            session_id: id,
            files: Files(tokens),
        })
    }

    /// Takes a file.
    pub(crate) async fn upload(self: &Arc<Self>, request: Request<Incoming>, who: Who, query: Query) -> Answer {
        let (Some(session), Some(file), Some(token)) = (query.session, query.file, query.token) else {
            return failed(StatusCode::BAD_REQUEST, "Missing parameters");
        };
        let begun = lock(&self.slot).start(&session, &file, &token, who, Instant::now());
        let active = lock(&self.active).clone().filter(|active| active.id == session);
        let (Ok(()), Some(active)) = (begun, active) else {
            return failed(StatusCode::FORBIDDEN, "Invalid token or session");
        };
        let mut upload = Upload {
            receiver: self.clone(),
            active: active.clone(),
            file,
            outcome: Outcome::Failed,
        };
        let Some(wanted) = active.wanted.get(&upload.file) else {
            return failed(StatusCode::FORBIDDEN, "Invalid token or session");
        };
        let failure = match active.landing.take(wanted, request.into_body()).await {
            Ok(()) => {
                upload.outcome = Outcome::Done;
                lock(&active.placed).insert(upload.file.clone());
                return empty(StatusCode::OK);
            }
            Err(failure) => failure,
        };
        match failure {
            Failed::Hash => {
                upload.outcome = Outcome::WrongHash;
                failed(StatusCode::UNPROCESSABLE_ENTITY, "Checksum mismatch")
            }
            Failed::Length => failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The file has another size than announced",
            ),
            Failed::Broken | Failed::Lost => failed(StatusCode::INTERNAL_SERVER_ERROR, "The file did not come whole"),
            Failed::Stopped => failed(StatusCode::FORBIDDEN, "Cancelled"),
            Failed::Storage(why) => {
                // It is not tried again: nothing would change.
                active.landing.give_up(wanted, &why);
                upload.outcome = Outcome::Done;
                lock(&active.placed).insert(upload.file.clone());
                failed(StatusCode::INTERNAL_SERVER_ERROR, "The file cannot be written")
            }
        }
    }

    /// The sender cancels.
    pub(crate) async fn cancelled_there(self: &Arc<Self>, session: Option<&str>, who: Who) {
        let cancelled = lock(&self.slot).cancel(session, who);
        match cancelled {
            Cancelled::Question(_) => lock(&self.question).cancel(),
            Cancelled::Session => self.finish(End::CancelledThere).await,
            Cancelled::Nothing => {}
        }
    }

    async fn end(self: &Arc<Self>, tls: &Tls, how: End) {
        let reach = lock(&self.active)
            .as_ref()
            .and_then(|active| Some((active.id.clone(), active.reach.clone()?)));
        if let Some((id, place)) = reach {
            farewell(&place, tls, Some(&id)).await;
        }
        self.finish(how).await;
    }

    /// Ends the session, once.
    async fn finish(self: &Arc<Self>, how: End) {
        let Some(active) = lock(&self.active).take() else {
            return;
        };
        let telling = self.telling.clone();
        let conclude = move || {
            let placed = std::mem::take(&mut *lock(&active.placed));
            let missing = active
                .wanted
                .iter()
                .filter(|(id, _)| !placed.contains(*id))
                .map(|(_, wanted)| wanted);
            let concluded = active.landing.conclude(missing, "it did not come");
            let how = match how {
                End::Complete => concluded,
                End::CancelledThere => concluded.and(Err(Error::CancelledThere.into())),
                End::CancelledHere => concluded.and(Err(sealway_drop::Error::Cancelled)),
                End::Silent => concluded.and(Err(Error::Silent.into())),
            };
            telling.ended(&active.peer, how, &active.landing.progress);
        };
        let _ = tokio::task::spawn_blocking(conclude).await;
    }
}

/// What an offer is answered with.
enum Decided {
    Accepted(Accepted),
    Nothing,
    Declined,
    NoRoom,
    Failed,
}

/// A question that a person is asked.
struct Question {
    receiver: Arc<Receiver>,
    number: u64,
    cancel: Cancel,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.cancel.cancel();
        lock(&self.receiver.slot).withdraw(self.number);
    }
}

/// An upload, which ends however the request does.
struct Upload {
    receiver: Arc<Receiver>,
    active: Arc<Active>,
    file: String,
    outcome: Outcome,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let over = lock(&self.receiver.slot).finish(&self.active.id, &self.file, self.outcome, Instant::now());
        if over {
            let receiver = self.receiver.clone();
            tokio::spawn(async move { receiver.finish(End::Complete).await });
        }
    }
}

/// Where a sender can be told that it is over; a browser cannot.
fn reach(offer: &Offer, who: Who, from: SocketAddr) -> Option<Place> {
    let port = offer.info.port.filter(|port| *port != 0)?;
    let mut address = from;
    address.set_port(port);
    Some(Place {
        address,
        protocol: offer.info.protocol?,
        pin: who.certificate,
    })
}

fn shown(offer: &Offer, from: SocketAddr) -> String {
    format!("{} at {}", offer.info.shown(), from.ip())
}

/// 128 random bits as digits that stand unencoded in a query.
fn random() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
