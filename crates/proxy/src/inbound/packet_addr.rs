//! Datagrams that name their own targets (packetaddr), in an association or a stream of any inbound.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::{Address, Destination, Network, Step, packet_addr as wire};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::flows::{Flows, Shares};
use super::local::{Datagram, Reply};
use crate::Error;
use crate::dispatch::{Dispatcher, Origin, Request, Session, User};
use crate::error::Pending;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::{PacketEnd, Slot};

/// Answers that may wait. More are lost, as in a full socket.
const QUEUE: usize = 128;
/// How often it is looked at whether anything moves, at most.
const LOOK: Duration = Duration::from_secs(5);

/// What the datagrams lie in.
enum Form {
    /// Each in a datagram, in an association with this name.
    Datagrams(Box<dyn PacketEnd>, Destination),
    /// One behind the other.
    Stream(Box<Stream>),
}

/// Datagrams that name whom they are for or from.
pub(super) struct Within {
    form: Form,
    out: Vec<u8>,
}

impl Within {
    pub(super) fn datagrams(near: Box<dyn PacketEnd>, to: Destination) -> Within {
        Within {
            form: Form::Datagrams(near, to),
            out: Vec::new(),
        }
    }

    pub(super) fn stream(mut near: Box<Stream>) -> Within {
        near.trust();
        Within {
            form: Form::Stream(near),
            out: Vec::new(),
        }
    }
}

fn destination(peer: std::net::SocketAddr) -> Destination {
    Destination::udp(Address::from(peer.ip()), peer.port())
}

impl PacketEnd for Within {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        match &mut self.form {
            Form::Datagrams(near, _) => loop {
                if !ready!(near.poll_recv(cx, slot))? {
                    return Poll::Ready(Ok(false));
                }
                let len = slot.len();
                let bytes = &mut slot.take()[..len];
                match wire::decode(bytes) {
                    Ok((peer, at)) => {
                        bytes.copy_within(at.., 0);
                        slot.fill(len - at, destination(peer));
                        return Poll::Ready(Ok(true));
                    }
                    // One that is wrong is no reason to lose the others.
                    Err(error) => {
                        tracing::debug!("datagram dropped: {error}");
                        slot.clear();
                    }
                }
            },
            Form::Stream(stream) => loop {
                let payload = stream.payload();
                if let Step::Done { value, used } = wire::decode_stream(payload)? {
                    let (peer, range) = value;
                    slot.copy(&payload[range], destination(peer));
                    stream.consume(used);
                    return Poll::Ready(Ok(true));
                }
                if stream.wants_open() {
                    stream.open()?;
                    continue;
                }
                if stream.has_ended() {
                    return Poll::Ready(Ok(false));
                }
                ready!(stream.poll_fill(cx))?;
            },
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        let Some(peer) = peer.socket_addr() else {
            return Poll::Ready(Ok(()));
        };
        self.out.clear();
        match &mut self.form {
            Form::Datagrams(near, to) => {
                wire::push_head(&mut self.out, peer);
                self.out.extend_from_slice(bytes);
                near.poll_send(cx, &self.out, to)
            }
            Form::Stream(stream) => {
                ready!(stream.poll_flush(cx))?;
                match wire::push_stream(&mut self.out, peer, bytes) {
                    Ok(()) => stream.seal(&self.out)?,
                    Err(error) => tracing::debug!("datagram dropped: {error}"),
                }
                match stream.poll_flush(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    _ => Poll::Ready(Ok(())),
                }
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match &mut self.form {
            Form::Datagrams(near, _) => near.poll_flush(cx),
            Form::Stream(stream) => stream.poll_flush(cx),
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        match &mut self.form {
            Form::Datagrams(near, _) => near.finish(cx),
            Form::Stream(stream) => stream.finish(cx),
        }
    }
}

/// A client's datagrams that name their own targets, as the server.
pub(super) struct Datagrams {
    near: Within,
    user: Arc<User>,
    shares: Shares,
}

impl Datagrams {
    pub(super) fn new(near: Within, user: Arc<User>, shares: Shares) -> Datagrams {
        Datagrams { near, user, shares }
    }
}

impl Session for Datagrams {
    fn user(&self) -> &User {
        &self.user
    }

    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>> {
        Box::pin(async move {
            let Datagrams { mut near, user, shares } = *self;
            let served = serve(&mut near, user, shares, &dispatcher, &origin).await;
            poll_fn(|cx| {
                near.finish(cx);
                Poll::Ready(())
            })
            .await;
            served.map(|()| None)
        })
    }
}

/// Sends what comes to where it goes and returns what comes back, until the client ends the association, or has sent nothing
/// for as long as the policy allows and its flows are over.
async fn serve(
    near: &mut Within,
    user: Arc<User>,
    shares: Shares,
    dispatcher: &Arc<Dispatcher>,
    origin: &Origin,
) -> Result<(), Error> {
    let idle = user.level.timeouts.idle;
    let mut flows = Flows::new(Arc::clone(dispatcher), user, Traffic::default()).sharing(&shares);
    let (answers, mut waiting) = mpsc::channel::<Datagram>(QUEUE);
    let (mut slot, mut answer) = (Slot::default(), None::<Datagram>);
    let mut last = Instant::now();
    loop {
        let moving = poll_fn(|cx| {
            loop {
                if answer.is_none() {
                    answer = match waiting.poll_recv(cx) {
                        Poll::Ready(next) => next,
                        Poll::Pending => break,
                    };
                }
                let Some(one) = &answer else { break };
                if near.poll_send(cx, one.bytes(), one.to())?.is_pending() {
                    break;
                }
                answer = None;
            }
            if let Poll::Ready(Err(error)) = near.poll_flush(cx) {
                return Poll::Ready(Err(error));
            }
            near.poll_recv(cx, &mut slot)
        });
        match timeout(LOOK.min(idle), moving).await {
            Ok(more) => {
                if !more? {
                    return Ok(());
                }
                last = Instant::now();
            }
            Err(_) if last.elapsed() >= idle && flows.are_over() => return Ok(()),
            Err(_) => continue,
        }
        if let Some((mut to, bytes)) = slot.datagram() {
            to.network = Network::Udp;
            if let Some(datagram) = shares.asked.keep(bytes, to) {
                flows
                    .carry(origin, datagram, Reply::Queue(answers.clone(), shares.answers.clone()))
                    .await;
            }
        }
        slot.clear();
    }
}
