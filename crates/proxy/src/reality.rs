//! REALITY at an inbound: to who has the key it looks like another site up to the end of the handshake, to everybody else it is
//! that site.
//!
//! Every connection is passed on to the target from its first byte, while the hello in it is read. Whoever is not let in stays
//! connected to the target ([`Passing`]), and sees nothing but what the target does. Of who is let in, the target gets no more
//! than the hello; the flight that it answers with says how ours has to look. Until the client has ended the handshake, the target
//! waits with us, and says and does what is to be said and done to whoever ends it otherwise.
//!
//! Every connection brings one to the target, made when it comes. One made before would be nearer its end: servers count how
//! long they wait for a client from the moment it connects.
//!
//! # Memory
//!
//! Until it is known who speaks: a copy of what was said, at most [`MAX_SEEN`](sealway_tls::reality::gate::MAX_SEEN) bytes, and of the
//! target's flight, at most [`MAX_FLIGHT`](sealway_tls::reality::flight::MAX_FLIGHT). A stranger then costs two sockets, and buffers only while bytes are on their way; nothing more than a fallback of
//! VLESS. A client costs what one of TLS does: two keys, and buffers while bytes are on their way.

mod bucket;
mod crowd;
mod finish;
mod mirror;
mod probe;
mod stranger;
mod target;

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_tls::codec::{ClientHello, MAX_HELLO, Message, ServerHello, record};
use sealway_tls::reality::certificate::ServerKey;
use sealway_tls::reality::flight::Shape;
use sealway_tls::reality::gate::{Admitted, Gate, Heard, Hearing, MAX_SEEN};
use sealway_tls::reality::session_id::Terms;
use sealway_tls::schedule::KeyLog;
use sealway_tls::server::{self, AwaitFinished, Lengths, answer_in_shape};
use tokio::time::{Instant, timeout, timeout_at};

use crate::Error;
use crate::clock::unix_millis;
use crate::log::Limits;
use crate::proxy_protocol;
use crate::random;
use crate::replay;
use crate::settings::{Secret, ServerReality, SocketOptions};
use crate::stats::Traffic;
use crate::tls::build;
use crate::tls::handshake::Established;

use crowd::{ARRIVING, FINISHING, Place, STRANGERS, WAITING};
use finish::{End, Finishing};
use mirror::{Answered, Mirror, Said};
use probe::{MAX_RECORDS, Probes};
use target::Target;

pub(crate) use stranger::Passing;

/// How often somebody who waits for a place looks for one.
const TURN: Duration = Duration::from_millis(200);

/// Lines a second about connections of one network that are passed on.
const LINES: u32 = 5;

/// A connection as its socket, or a server in front, tells of it.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// Who the client is.
    pub(crate) source: Option<SocketAddr>,
    /// Where it came in.
    pub(crate) local: Option<SocketAddr>,
}

impl Ends {
    fn address(self) -> Option<IpAddr> {
        self.source.map(|source| source.ip())
    }
}

/// Who came.
pub(crate) enum Met {
    /// One who has the key.
    Client(Box<Established>),
    /// Somebody else, who is connected to the target.
    Stranger(Box<Passing>),
    /// Nobody any more. What ends so is no fault that others may hold against who came: it was told where it was.
    Gone(Error),
}

/// Why a connection is closed that there is no room for, as a server does that has too many.
const FULL: Error = Error::Protocol {
    of: "REALITY",
    what: "more connections than are taken without the key",
};

/// REALITY of an inbound, ready to accept.
pub(crate) struct Reality {
    gate: Gate,
    target: Arc<Target>,
    key: ServerKey,
    probes: Probes,
    settings: ServerReality,
    lines: Limits,
    key_log: Option<Arc<dyn KeyLog>>,
}

/// Why nobody is served whose connection would come back.
const LOOP: Error = Error::Forbidden {
    target: String::new(),
    rule: "the guard against loops: the target of REALITY is this server",
};

impl Reality {
    /// Makes the keys. `place` is that of the stream settings, `socket` what its sockets have.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub(crate) fn new(place: &str, settings: &ServerReality, socket: &SocketOptions) -> Result<Self, Error> {
        let place = format!("{place}.realitySettings");
        let wrong = |what: &dyn std::fmt::Display| Error::config(&place, what.to_string());
        let seed = settings.mldsa65_seed.as_ref().map(|seed| &seed.0);
        let mut drawn = Secret([0; 32]);
        random::fill(&mut drawn.0)?;
        let key = ServerKey::new(&drawn.0, seed).map_err(|error| wrong(&error))?;
        let milliseconds = |most: Duration| u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        let terms = Terms {
            short_ids: settings.short_ids.clone(),
            min_version: settings.min_client_version,
            max_version: settings.max_client_version,
            max_skew: settings.max_time_diff.map(milliseconds),
        };
        let options = SocketOptions {
            mark: socket.mark,
            ..SocketOptions::default()
        };
        Ok(Reality {
            gate: Gate::new(&settings.private_key.0, settings.server_names.clone(), terms),
            target: Arc::new(Target::new(settings.target.clone(), options)),
            key,
            probes: Probes::new(&place, settings)?,
            settings: settings.clone(),
            lines: Limits::new(LINES),
            key_log: build::own_key_log(&place, &settings.key_log)?,
        })
    }

    /// Begins to find out how the target goes on after a handshake. Must be called within a tokio runtime.
    pub(crate) fn begin(self: &Arc<Self>) {
        self.probes.begin(&self.target);
    }

    /// Finds out who came, of whom `read` was received already. Whoever has not said a whole hello by the deadline stays with the
    /// target.
    pub(crate) async fn meet(
        &self,
        client: Sock,
        read: Vec<u8>,
        ends: (Ends, Option<SocketAddr>),
        traffic: &Traffic,
        deadline: Instant,
    ) -> Met {
        let meeting = self.find_out(client, read, ends, traffic, deadline);
        meeting.await.unwrap_or_else(Met::Gone)
    }

    async fn find_out(
        &self,
        client: Sock,
        read: Vec<u8>,
        (ends, listener): (Ends, Option<SocketAddr>),
        traffic: &Traffic,
        deadline: Instant,
    ) -> Result<Met, Error> {
        if self.probes.loops() {
            return Err(LOOP);
        }
        let (mut client, mut read) = (client, read);
        let (arriving, known) = self.enter(&mut client, &mut read, ends, traffic, deadline).await?;
        let target = self.reach(ends, listener, deadline).await?;
        let mut mirror = Mirror::new(client, read, target, traffic);
        let said = timeout_at(deadline, mirror.hear()).await;
        let (hello, used) = match said.unwrap_or(Ok(Said::Other("no whole hello in time")))? {
            Said::Hello(hello, used) => (hello, used),
            Said::Other(why) => return self.pass_on(mirror, ends, why),
        };
        if probe::is_one(&hello) {
            return Err(LOOP);
        }
        let admitted = match known.unwrap_or_else(|| self.admit(&hello)) {
            Ok(admitted) => admitted,
            Err(why) => return self.pass_on(mirror, ends, why),
        };
        let unfinished = "handshake did not complete successfully";
        let Some(_place) = FINISHING.enter(ends.address()) else {
            return self.pass_on(mirror, ends, format_args!("{unfinished}: {FULL}"));
        };
        if let Some(arriving) = arriving {
            arriving.give_back();
        }
        let answered = timeout_at(deadline, mirror.flight()).await;
        let shape = match answered.unwrap_or(Ok(Answered::Unfit("it took too long")))? {
            Answered::Flight(shape) => shape,
            Answered::Unfit(why) => {
                let why = format!("target sent incorrect server hello or handshake incomplete: {why}");
                return self.pass_on(mirror, ends, why);
            }
        };
        // Half of the time that is left is for the client.
        let wait = deadline.saturating_duration_since(Instant::now()) / 2;
        let mut flight = Vec::new();
        let (awaiting, after, room) = match self.answer(&hello, &admitted, (&shape, wait), &mut flight).await {
            Ok(answered) => answered,
            // Nothing was said yet that the target would not have said.
            Err(error) => return self.pass_on(mirror, ends, format_args!("{unfinished}: {error}")),
        };
        let finishing = Finishing::new(mirror, used, awaiting, flight, room);
        match finishing.finish(&after).await? {
            End::Established(established) => Ok(Met::Client(established)),
            End::Other(mirror, why) => self.pass_on(*mirror, ends, format_args!("{unfinished}: {why}")),
        }
    }

    /// A place among those of whom nothing is known, and whether the client is let in, where that was found out on the way. Where there
    /// is none, who has the key needs none, and anybody else waits for one, as before a server that does not get round to him.
    async fn enter(
        &self,
        client: &mut Sock,
        read: &mut Vec<u8>,
        ends: Ends,
        traffic: &Traffic,
        deadline: Instant,
    ) -> Result<(Option<Place>, Option<Result<Admitted, String>>), Error> {
        let address = ends.address();
        if let Some(place) = ARRIVING.enter(address) {
            return Ok((Some(place), None));
        }
        let _waiting = WAITING.enter(address).ok_or(FULL)?;
        let (mut hearing, mut hears, mut denied) = (Hearing::default(), true, None);
        let entering = async {
            loop {
                match hearing.look(read) {
                    Heard::Hello(hello, _) if hears => match self.admit(&hello) {
                        Ok(admitted) => return Ok((None, Some(Ok(admitted)))),
                        Err(why) => (hears, denied) = (false, Some(Err(why))),
                    },
                    Heard::More if read.len() < MAX_SEEN => {}
                    _ => hears = false,
                }
                let mut piece = [0; 2048];
                let more = poll_fn(|cx| match hears {
                    true => client.poll_read(cx, &mut piece),
                    false => Poll::Pending,
                });
                match timeout(TURN, more).await {
                    Ok(Ok(0)) => return Err(Error::Closed),
                    Ok(got) => {
                        let got = got?;
                        traffic.received(got);
                        read.extend_from_slice(&piece[..got]);
                    }
                    Err(_) => {
                        if let Some(place) = ARRIVING.enter(address) {
                            return Ok((Some(place), denied));
                        }
                    }
                }
            }
        };
        timeout_at(deadline, entering).await.unwrap_or(Err(FULL))
    }

    /// A connection to the target, which was told who the client is.
    async fn reach(&self, ends: Ends, listener: Option<SocketAddr>, deadline: Instant) -> Result<Sock, Error> {
        let reaching = async {
            let mut sock = self.target.dial(listener).await?;
            if self.settings.xver > 0 {
                proxy_protocol::write(&mut sock, self.settings.xver, ends.source, ends.local).await?;
            }
            Ok::<_, Error>(sock)
        };
        let reached = timeout_at(deadline, reaching).await;
        reached
            .unwrap_or(Err(Error::TimedOut("connecting to the target of REALITY")))
            .inspect_err(|error| self.target.unreachable(error))
    }

    /// Whether the client with this hello is let in, or why not.
    fn admit(&self, hello: &[u8]) -> Result<Admitted, String> {
        let admitted = self.gate.admit(hello, unix_millis());
        let admitted = admitted.map_err(|denied| denied.to_string())?;
        let again = "authentication failed or validation criteria not met: this hello";
        if self.settings.max_time_diff.is_some() && replay::check_start(admitted.claim.time.into()).is_err() {
            return Err(format!(
                "{again} may have come to this program before it was started again"
            ));
        }
        match replay::remember_hello(&admitted.random) {
            true => Ok(admitted),
            false => Err(format!("{again} came before")),
        }
    }

    /// Leaves a connection to the target, and says why.
    fn pass_on(&self, mirror: Mirror, ends: Ends, why: impl std::fmt::Display) -> Result<Met, Error> {
        self.tell(ends, &why);
        let place = STRANGERS.enter(ends.address()).ok_or(FULL)?;
        let limits = [self.settings.limit_upload, self.settings.limit_download];
        Ok(Met::Stranger(Box::new(mirror.into_passing(limits, place))))
    }

    /// Notes a connection that is not a client's, in words that filters of logs know.
    fn tell(&self, ends: Ends, why: &dyn std::fmt::Display) {
        let limit = self.lines.of(ends.address());
        if let Some(kept) = limit.pass() {
            let from = ends
                .source
                .map_or_else(|| "a unix socket".to_owned(), |source| source.to_string());
            tracing::info!("REALITY: processed invalid connection from {from}: {why}{kept}");
        }
    }

    /// Makes a flight for a client in the shape of the target's, and says how long the records are to be that follow its end of the
    /// handshake, and how many there may be at most.
    async fn answer(
        &self,
        hello: &[u8],
        admitted: &Admitted,
        (shape, wait): (&Shape, Duration),
        flight: &mut Vec<u8>,
    ) -> Result<(AwaitFinished, Vec<usize>, usize), Error> {
        let message = |bytes| Message::first(bytes, MAX_HELLO).ok().flatten();
        let (Some(asked), Some(theirs)) = (message(hello), message(&shape.hello)) else {
            return Err(Error::protocol("REALITY", "a hello that was read before"));
        };
        let asked = ClientHello::read(asked)?;
        let after = self.probes.of(&asked, wait).await;
        let body = |len: &usize| len - record::HEAD;
        // What the target has sent with this flight counts before what it sends with others; how much was there is chance.
        let rest_of_it = after.before.get(shape.more.len()..).unwrap_or_default();
        let behind = shape.more.iter().chain(rest_of_it).take(MAX_RECORDS);
        let next: Vec<usize> = behind.map(body).collect();
        let shape = server::Shape {
            hello: ServerHello::read(theirs)?,
            flight: match shape.records.as_slice() {
                [a, b, c, d] => Lengths::Each([a, b, c, d].map(body)),
                [all, ..] => Lengths::Together(body(all)),
                [] => return Err(Error::protocol("REALITY", "a flight without records")),
            },
            next: &next,
            changes: after.changes,
        };
        let identity = self.key.for_client(admitted.key.as_bytes());
        let mut failed = Ok(());
        let mut draw = random::filler(&mut failed);
        let log = self.key_log.as_deref();
        let answered = answer_in_shape(&asked, &shape, &identity, log, &mut draw, flight);
        drop(draw);
        failed?;
        let awaiting = answered?;
        let room = MAX_RECORDS - next.len();
        let left = after.records.iter().take(room);
        Ok((awaiting, left.copied().collect(), room))
    }
}

/// What tests begin with: the target is this port here.
#[cfg(test)]
pub(crate) fn to_port(port: u16) -> ServerReality {
    ServerReality {
        target: crate::settings::FallbackDial::Local(port),
        xver: 0,
        server_names: vec!["a.test".to_owned()],
        private_key: Secret([1; 32]),
        short_ids: vec![[0; 8]],
        min_client_version: None,
        max_client_version: None,
        max_time_diff: None,
        mldsa65_seed: None,
        limit_upload: None,
        limit_download: None,
        key_log: None,
    }
}

#[cfg(test)]
mod tests;
