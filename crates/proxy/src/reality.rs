//! REALITY at an inbound: to who has the key it looks like another site up to the end of the handshake, to everybody else it is
//! that site.
//!
//! Every connection is passed on to the target from its first byte, while the hello in it is read. Whoever is not let in stays
//! connected to the target ([`Passing`]), and sees nothing but what the target does. Of who is let in, the target gets no more
//! than the hello; the flight that it answers with says how ours has to look.
//!
//! # Memory
//!
//! Until it is known who speaks: a copy of what was said, at most [`MAX_SEEN`] bytes, and of the target's flight, at most
//! [`MAX_FLIGHT`]. A stranger then costs two sockets, and buffers only while bytes are on their way; nothing more than a fallback of
//! VLESS. A client costs what one of TLS does: two keys, and buffers while bytes are on their way.

mod bucket;
mod probe;
mod stranger;
mod target;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealway_net::sock::Sock;
use sealway_tls::codec::{ClientHello, MAX_HELLO, Message, ServerHello, record};
use sealway_tls::reality::certificate::ServerKey;
use sealway_tls::reality::flight::{Flight, Look, MAX_FLIGHT, Shape};
use sealway_tls::reality::gate::{Admitted, Gate, Heard, Hearing, MAX_SEEN};
use sealway_tls::reality::session_id::Terms;
use sealway_tls::schedule::KeyLog;
use sealway_tls::server::{self, AwaitFinished, Lengths, answer_in_shape};
use tokio::time::{Instant, timeout_at};

use crate::Error;
use crate::clock::unix_millis;
use crate::closing::LINGER;
use crate::log::Limits;
use crate::proxy_protocol;
use crate::random;
use crate::replay;
use crate::settings::{ServerReality, SocketOptions, ThrottledAfter};
use crate::stats::Traffic;
use crate::tls::build;
use crate::tls::handshake::{Agreed, Established};

use probe::Probes;
use target::Target;

pub(crate) use stranger::Passing;

/// Lines a second about connections of one network that are passed on.
const LINES: u32 = 5;
/// Most bytes that wait for a target that does not take them, before the client is not read.
const MAX_BEHIND: usize = 16 << 10;
/// Most bytes that a client may have sent before its handshake is through: its end of it, and first payload behind that.
const MAX_INPUT: usize = 64 << 10;

/// A connection as its socket, or a server in front, tells of it.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// Who the client is.
    pub(crate) source: Option<SocketAddr>,
    /// Where it came in.
    pub(crate) local: Option<SocketAddr>,
}

/// Who came.
pub(crate) enum Met {
    /// One who has the key.
    Client(Box<Established>),
    /// Somebody else, who is connected to the target.
    Stranger(Box<Passing>),
}

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

/// What the first bytes said.
enum Said {
    /// A hello: the message, and where in what was heard it ended.
    Hello(Vec<u8>, usize),
    /// It is not to be waited for, or not to be read.
    Other(&'static str),
}

/// What the target answered to a hello that is let in.
enum Answered {
    Flight(Shape),
    /// This target cannot be borrowed from.
    Unfit(&'static str),
}

impl Reality {
    /// Makes the keys. `place` is that of the stream settings, `socket` what its sockets have.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub(crate) fn new(place: &str, settings: &ServerReality, socket: &SocketOptions) -> Result<Self, Error> {
        let place = format!("{place}.realitySettings");
        let wrong = |what: &dyn std::fmt::Display| Error::config(&place, what.to_string());
        let seed = settings.mldsa65_seed.as_ref().map(|seed| &seed.0);
        let key = ServerKey::new(&random::bytes()?, seed).map_err(|error| wrong(&error))?;
        let milliseconds = |most: std::time::Duration| u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
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
        (ends, listener): (Ends, Option<SocketAddr>),
        traffic: &Traffic,
        deadline: Instant,
    ) -> Result<Met, Error> {
        let mut mirror = Mirror {
            client,
            heard: read,
            passed: 0,
            answer: Vec::new(),
            traffic: traffic.clone(),
            target: self.reach(ends, listener, deadline).await?,
        };
        let said = timeout_at(deadline, mirror.hear()).await;
        let (hello, used) = match said.unwrap_or(Ok(Said::Other("no whole hello in time")))? {
            Said::Hello(hello, used) => (hello, used),
            Said::Other(why) => return self.pass_on(mirror, ends, why),
        };
        let admitted = match self.admit(&hello) {
            Ok(admitted) => admitted,
            Err(why) => return self.pass_on(mirror, ends, why),
        };
        let late = || Error::TimedOut("the target's flight");
        let shape = match timeout_at(deadline, mirror.flight()).await.map_err(|_| late())?? {
            Answered::Flight(shape) => shape,
            Answered::Unfit(why) => {
                let why = format!("target sent incorrect server hello or handshake incomplete: {why}");
                return self.pass_on(mirror, ends, why);
            }
        };
        let Mirror {
            client, heard, target, ..
        } = mirror;
        drop(target);
        let rest = heard.get(used..).unwrap_or_default().to_vec();
        let answering = self.answer(client, &hello, &admitted, &shape, rest, traffic);
        let answered = timeout_at(deadline, answering).await;
        match answered.unwrap_or(Err(Error::TimedOut("REALITY handshake"))) {
            Ok(established) => Ok(Met::Client(Box::new(established))),
            Err(error) => {
                self.tell(ends, &format_args!("handshake did not complete successfully: {error}"));
                Err(error)
            }
        }
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
        let limits = [self.settings.limit_upload, self.settings.limit_download];
        Ok(Met::Stranger(Box::new(mirror.into_passing(limits)?)))
    }

    /// Notes a connection that is not a client's, in words that filters of logs know.
    fn tell(&self, ends: Ends, why: &dyn std::fmt::Display) {
        let limit = self.lines.of(ends.source.map(|source| source.ip()));
        if let Some(kept) = limit.pass() {
            let from = ends
                .source
                .map_or_else(|| "a unix socket".to_owned(), |source| source.to_string());
            tracing::info!("REALITY: processed invalid connection from {from}: {why}{kept}");
        }
    }

    /// Shakes hands with a client, in the shape of the target's flight.
    async fn answer(
        &self,
        client: Sock,
        hello: &[u8],
        admitted: &Admitted,
        shape: &Shape,
        rest: Vec<u8>,
        traffic: &Traffic,
    ) -> Result<Established, Error> {
        let mut handshake = Handshake {
            client,
            traffic,
            input: rest,
            out: Vec::new(),
        };
        let message = |bytes| Message::first(bytes, MAX_HELLO).ok().flatten();
        let (Some(asked), Some(theirs)) = (message(hello), message(&shape.hello)) else {
            return Err(Error::protocol("REALITY", "a hello that was read before"));
        };
        let asked = ClientHello::read(asked)?;
        let after = self.probes.of(&asked).await;
        let body = |len: &usize| len - record::HEAD;
        let shape = server::Shape {
            hello: ServerHello::read(theirs)?,
            flight: match shape.records.as_slice() {
                [a, b, c, d] => Lengths::Each([a, b, c, d].map(body)),
                [all, ..] => Lengths::Together(body(all)),
                [] => return Err(Error::protocol("REALITY", "a flight without records")),
            },
            next: shape.more.as_ref().map(body),
            changes: after.changes,
        };
        let identity = self.key.for_client(admitted.key.as_bytes());
        let mut failed = Ok(());
        let mut draw = |out: &mut [u8]| {
            if let Err(error) = random::fill(out) {
                failed = Err(error);
            }
        };
        let log = self.key_log.as_deref();
        let answered = answer_in_shape(&asked, &shape, &identity, log, &mut draw, &mut handshake.out);
        failed?;
        let awaiting = answered?;
        handshake.finish(awaiting, &after.records).await
    }
}

/// A connection of which both ends are known, and not yet what it is.
struct Mirror {
    client: Sock,
    target: Sock,
    /// What the client has said, and how much of it was passed on.
    heard: Vec<u8>,
    passed: usize,
    /// What the target has said, none of which was passed on.
    answer: Vec<u8>,
    traffic: Traffic,
}

impl Mirror {
    /// Passes on what the client says up to the end of its hello, or until it shows that there will be none.
    async fn hear(&mut self) -> Result<Said, Error> {
        let mut hearing = Hearing::default();
        loop {
            match hearing.look(&self.heard) {
                Heard::More => {}
                Heard::Other => return Ok(Said::Other("failed to read client hello")),
                Heard::Hello(hello, used) => return Ok(Said::Hello(hello, used)),
            }
            if self.heard.len() >= MAX_SEEN {
                return Ok(Said::Other("failed to read client hello: too long"));
            }
            if let Some(why) = poll_fn(|cx| self.poll_hear(cx)).await? {
                return Ok(Said::Other(why));
            }
        }
    }

    /// Ready when more was heard, or with the reason why nothing more is waited for.
    fn poll_hear(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&'static str>, Error>> {
        if self.poll_answer(cx)?.is_ready() {
            return Poll::Ready(Ok(Some("the target spoke first")));
        }
        self.pass(cx)?;
        if self.heard.len() - self.passed >= MAX_BEHIND {
            return Poll::Pending;
        }
        let mut piece = [0; 2048];
        match ready!(self.client.poll_read(cx, &mut piece))? {
            0 => Poll::Ready(Ok(Some("failed to read client hello: the client said no more"))),
            got => {
                self.traffic.received(got);
                self.heard.extend_from_slice(&piece[..got]);
                self.pass(cx)?;
                Poll::Ready(Ok(None))
            }
        }
    }

    /// Passes on as much as the target takes now.
    fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        while let Some(rest @ [_, ..]) = self.heard.get(self.passed..) {
            match self.target.poll_write(cx, rest) {
                Poll::Pending => break,
                Poll::Ready(Ok(wrote)) => self.passed += wrote,
                Poll::Ready(Err(error)) => return Err(self.broken(error)),
            }
        }
        Ok(())
    }

    /// Ready when the target has said something more, or ended.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let mut piece = [0; 2048];
        match ready!(self.target.poll_read(cx, &mut piece)) {
            Ok(got) => {
                self.answer.extend_from_slice(&piece[..got]);
                Poll::Ready(Ok(got))
            }
            Err(error) => Poll::Ready(Err(self.broken(error))),
        }
    }

    /// The target has broken the connection, and so the client's breaks.
    fn broken(&self, error: std::io::Error) -> Error {
        self.client.reset_on_close();
        error.into()
    }

    /// Reads the target's flight.
    async fn flight(&mut self) -> Result<Answered, Error> {
        let mut flight = Flight::default();
        loop {
            match flight.look(&self.answer) {
                Look::Whole(shape) => return Ok(Answered::Flight(shape)),
                Look::Unfit(why) => return Ok(Answered::Unfit(why)),
                Look::Broken(why) => return Err(Error::protocol("REALITY, as its target,", why)),
                Look::More => {}
            }
            if self.answer.len() >= MAX_FLIGHT {
                return Err(Error::protocol("REALITY, as its target,", "a flight that is too long"));
            }
            let got = poll_fn(|cx| {
                self.pass(cx)?;
                self.poll_answer(cx)
            });
            if got.await? == 0 {
                return match self.answer.is_empty() {
                    true => Ok(Answered::Unfit("it closed the connection")),
                    false => Err(Error::protocol("REALITY, as its target,", "a flight that breaks off")),
                };
            }
        }
    }

    /// The same connection, with the target.
    fn into_passing(self, limits: [Option<ThrottledAfter>; 2]) -> Result<Passing, Error> {
        let waiting = self.heard.get(self.passed..).unwrap_or_default().to_vec();
        Passing::new((self.client, waiting), (self.target, self.answer), limits, self.traffic)
    }
}

/// The end of a handshake, driven over a socket.
struct Handshake<'a> {
    client: Sock,
    traffic: &'a Traffic,
    /// What was received and not used.
    input: Vec<u8>,
    out: Vec<u8>,
}

impl Handshake<'_> {
    /// Writes the flight, waits for the client's end of the handshake, and sends records of these lengths that carry nothing.
    async fn finish(mut self, mut awaiting: AwaitFinished, after: &[usize]) -> Result<Established, Error> {
        self.write().await?;
        let mut connected = loop {
            let read = awaiting.read(&mut self.input, &mut self.out);
            let (used, connected) = match read {
                Ok(read) => read,
                Err(error) => {
                    // The client is owed the alert, and the end of the connection after it.
                    let leaving = async {
                        self.write().await?;
                        self.client.leave().await;
                        Ok::<(), Error>(())
                    };
                    let _ = tokio::time::timeout(LINGER, leaving).await;
                    return Err(error.into());
                }
            };
            self.input.drain(..used);
            if let Some(connected) = connected {
                break connected;
            }
            let mut piece = [0; 2048];
            let got = poll_fn(|cx| self.client.poll_read(cx, &mut piece)).await?;
            if got == 0 {
                return Err(Error::Closed);
            }
            self.traffic.received(got);
            self.input.extend_from_slice(&piece[..got]);
            if self.input.len() > MAX_INPUT {
                return Err(Error::protocol("TLS", "too much before the end of the handshake"));
            }
        };
        for length in after {
            let pushed = connected.records.push_nothing(length - record::HEAD, &mut self.out);
            pushed?;
        }
        self.write().await?;
        let name = connected.agreed.server_name.unwrap_or_default();
        Ok(Established {
            carrier: self.client.into(),
            records: connected.records,
            received: self.input,
            early: Vec::new(),
            closed: false,
            agreed: Agreed {
                sni: String::from_utf8_lossy(&name).to_ascii_lowercase(),
                alpn: String::new(),
            },
        })
    }

    async fn write(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.out.len() {
            let wrote = poll_fn(|cx| self.client.poll_write(cx, &self.out[at..])).await?;
            self.traffic.sent(wrote);
            at += wrote;
        }
        self.out.clear();
        Ok(())
    }
}
