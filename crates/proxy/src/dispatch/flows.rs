//! Datagrams of one client that each say where they go: the rules are asked for every target, and each outbound that they
//! choose has an association of its own.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::Destination;
use tokio::time::{Instant, Sleep, sleep_until};

use super::sniff::{Renamed, Sniffing, Watch};
use super::{Aim, Dispatcher, FlowWay, Origin, Route, User};
use crate::error::{Error, Pending};
use crate::udp::{PacketEnd, Questions, Slot, Waiting, size, sizes};

/// Associations of one client that are carried at once. An outbound that reaches every target needs one for all of them,
/// others need one for each.
pub(crate) const MAX_FLOWS: usize = 256;
/// Places of those that flows which go elsewhere than the client says leave to others.
pub(crate) const KEPT: usize = 32;
/// Targets of which one client's datagrams remember what the rules said.
pub(crate) const MAX_ROUTES: usize = 1024;
/// Bytes of one client's datagrams that wait while the rules look for addresses and outbounds are reached. What comes beyond
/// it is dropped, as a full socket would.
const MAX_WAITING: usize = 256 << 10;
/// How long a target that could not be reached is not tried again, while datagrams to it keep coming.
const RETRY: Duration = Duration::from_secs(10);
/// Shortest time between two looks at whether flows are idle.
const LOOK: Duration = Duration::from_millis(100);

/// What tells flows apart.
#[derive(PartialEq)]
struct Key {
    /// That of a route. `None`: the flow of one target, which finds out by itself where it goes.
    way: Option<FlowWay>,
    /// Where an outbound needs an association for each.
    target: Option<Destination>,
}

impl Key {
    /// A target that needs an association of its own, or that the outbound refuses, is not carried by one that is open to all.
    fn of(route: &Route, to: &Destination) -> Key {
        Key {
            way: Some(route.way()),
            target: route.own_target(to),
        }
    }

    fn is_own(&self, to: &Destination) -> bool {
        self.way.is_none() && self.target.as_ref() == Some(to)
    }
}

enum State {
    /// What waits may say where it is meant to go.
    Watched(Watch, Box<Sniffing>),
    /// The outbound is being reached.
    Opening(Opening),
    Open(Box<dyn PacketEnd>),
    /// What comes is thrown away: the target is refused or, until then, not tried again.
    Muted(Option<Instant>),
}

type Opening = Pending<'static, Box<dyn PacketEnd>>;

/// An association with one outbound.
struct Flow {
    key: Key,
    state: State,
    waiting: Waiting,
    /// When something last moved.
    last: Instant,
}

/// What looking after a flow found.
enum Drove {
    /// It goes on.
    Fine,
    /// It has said where it is meant to go, or that it does not say.
    Found(Result<Aim, Error>),
    /// It is over.
    Over,
    /// It could not begin.
    Failed(Error),
}

impl Flow {
    /// Reaches the outbound, then sends what has waited for that. `waits` counts the bytes of all flows that wait.
    fn drive(&mut self, cx: &mut Context<'_>, waits: &mut usize) -> Drove {
        if let State::Watched(watch, _) = &mut self.state {
            let Poll::Ready(found) = watch.poll(cx, &self.waiting) else {
                return Drove::Fine;
            };
            if let State::Watched(_, sniffing) = std::mem::replace(&mut self.state, State::Muted(None)) {
                return Drove::Found(sniffing.aim(found.into()));
            }
        }
        if let State::Opening(opening) = &mut self.state {
            match opening.as_mut().poll(cx) {
                Poll::Pending => return Drove::Fine,
                Poll::Ready(Ok(end)) => self.state = State::Open(end),
                Poll::Ready(Err(error)) => {
                    self.forget_waiting(waits);
                    return Drove::Failed(error);
                }
            }
        }
        if let State::Open(end) = &mut self.state {
            while let Some((bytes, to)) = self.waiting.front() {
                match end.poll_send(cx, bytes, to) {
                    Poll::Pending => return Drove::Fine,
                    Poll::Ready(Err(error)) => return over(&error),
                    Poll::Ready(Ok(())) => {
                        *waits -= size(bytes);
                        self.waiting.pop_front();
                    }
                }
            }
            if let Poll::Ready(Err(error)) = end.poll_flush(cx) {
                return over(&error);
            }
        }
        Drove::Fine
    }

    fn forget_waiting(&mut self, waits: &mut usize) {
        *waits -= sizes(&std::mem::take(&mut self.waiting));
    }
}

fn over(error: &Error) -> Drove {
    tracing::debug!("an association of datagrams broke off: {error}");
    Drove::Over
}

/// All flows of one client, as the other end of its datagrams.
pub(super) struct Flows {
    dispatcher: Arc<Dispatcher>,
    origin: Origin,
    user: Arc<User>,
    routes: HashMap<Destination, Route>,
    /// The targets that the rules are being asked for.
    routing: Questions<Route>,
    flows: Vec<Flow>,
    /// Bytes of datagrams that wait in flows.
    waits: usize,
    /// Whose turn it is to be received from.
    turn: usize,
    timer: Pin<Box<Sleep>>,
}

impl Flows {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, origin: Origin, user: Arc<User>) -> Box<Self> {
        let look = Instant::now() + look(&user);
        Box::new(Flows {
            dispatcher,
            origin,
            user,
            routes: HashMap::new(),
            routing: Questions::default(),
            flows: Vec::new(),
            waits: 0,
            turn: 0,
            timer: Box::pin(sleep_until(look)),
        })
    }

    /// Asks the rules for a target of which they have not said anything. The datagram waits for the answer.
    fn ask(&mut self, aim: &Aim, bytes: &[u8]) {
        let room = MAX_WAITING - self.waits;
        self.routing.put(&aim.asked, (bytes, &aim.asked), room, || {
            let (dispatcher, aim) = (Arc::clone(&self.dispatcher), aim.clone());
            let (origin, user) = (self.origin.clone(), Arc::clone(&self.user));
            Box::pin(async move { dispatcher.route(&origin, &aim, &user).await })
        });
    }

    /// Begins a flow that goes where its first datagrams say. `None`: there are too many.
    fn begin_own(&mut self, to: &Destination) -> Option<usize> {
        self.make_room(KEPT)?;
        let sniffing = Sniffing::new(&self.origin, to, &self.dispatcher.resolver, self.dispatcher.asked())?;
        let room = self.dispatcher.held.room(&self.origin, &self.user);
        let state = match sniffing.watch(&room) {
            Some(watch) => State::Watched(watch, Box::new(sniffing)),
            None => self.open_own(sniffing.aim(None.into())),
        };
        self.flows.push(Flow {
            key: Key {
                way: None,
                target: Some(to.clone()),
            },
            state,
            waiting: Waiting::new(),
            last: Instant::now(),
        });
        Some(self.flows.len() - 1)
    }

    /// Reaches what a flow of its own is meant for.
    fn open_own(&self, aim: Result<Aim, Error>) -> State {
        let dispatcher = Arc::clone(&self.dispatcher);
        let (origin, user) = (self.origin.clone(), Arc::clone(&self.user));
        State::Opening(Box::pin(async move {
            let aim = aim?;
            let route = dispatcher.route(&origin, &aim, &user).await;
            let far = route.outbound.associate(&aim.dial, &route.caller(&origin)).await?;
            Ok(Renamed::around(far, &aim.asked, &aim.dial))
        }))
    }

    /// Has a target that is new asked about. The flow that it has begun for itself, if it needs one.
    fn begin(&mut self, bytes: &[u8], to: &Destination) -> Option<usize> {
        let aim = match self.routing.is_asked(to) {
            // What the rules say of those before counts for this one too.
            true => Some(Aim::from(to.clone())),
            false => self.dispatcher.glance(&self.origin, to, bytes),
        };
        let aim = aim.or_else(|| match self.begin_own(to) {
            Some(_) => None,
            None => self.dispatcher.glance_in_passing(&self.origin, to, bytes),
        });
        match aim {
            Some(aim) => {
                self.ask(&aim, bytes);
                None
            }
            None => self.own_flow(to),
        }
    }

    /// The flow that a target has for itself, unless it could not be reached and may be tried again.
    fn own_flow(&mut self, to: &Destination) -> Option<usize> {
        let at = self.flows.iter().position(|flow| flow.key.is_own(to))?;
        if matches!(self.flows[at].state, State::Muted(Some(until)) if until <= Instant::now()) {
            self.remove(at);
            return None;
        }
        Some(at)
    }

    /// Sends a datagram by a flow.
    fn send_by(&mut self, cx: &mut Context<'_>, at: usize, bytes: &[u8], to: &Destination) -> Poll<()> {
        let flow = &mut self.flows[at];
        match &mut flow.state {
            State::Open(end) if flow.waiting.is_empty() => match ready!(end.poll_send(cx, bytes, to)) {
                Ok(()) => flow.last = Instant::now(),
                Err(error) => {
                    over(&error);
                    self.remove(at);
                }
            },
            State::Open(_) | State::Opening(_) | State::Watched(..) => {
                flow.last = Instant::now();
                if self.waits + self.routing.waits() + size(bytes) <= MAX_WAITING {
                    self.waits += size(bytes);
                    flow.waiting.push_back((bytes.to_vec(), to.clone()));
                }
                self.drive(cx, at);
            }
            State::Muted(_) => flow.last = Instant::now(),
        }
        Poll::Ready(())
    }

    /// Puts what has waited for the rules where they say.
    fn take_routes(&mut self, cx: &mut Context<'_>) {
        while let Some((to, route, waiting)) = self.routing.poll(cx) {
            if self.routes.len() >= MAX_ROUTES {
                self.routes.clear();
            }
            self.routes.insert(to.clone(), route.clone());
            let Some(at) = self.flow(route, &to) else { continue };
            let flow = &mut self.flows[at];
            flow.last = Instant::now();
            if !matches!(flow.state, State::Muted(_)) {
                self.waits += sizes(&waiting);
                flow.waiting.extend(waiting);
                self.drive(cx, at);
            }
        }
    }

    /// The flow of a target, which is begun if there is none. `None`: there are too many.
    fn flow(&mut self, route: Route, to: &Destination) -> Option<usize> {
        let now = Instant::now();
        let key = Key::of(&route, to);
        if let Some(at) = self.flows.iter().position(|flow| flow.key == key) {
            if !matches!(self.flows[at].state, State::Muted(Some(until)) if until <= now) {
                return Some(at);
            }
            self.remove(at);
        }
        self.make_room(0)?;
        let (caller, to) = (route.caller(&self.origin), to.clone());
        let opening = async move { route.outbound.associate(&to, &caller).await };
        self.flows.push(Flow {
            key,
            state: State::Opening(Box::pin(opening)),
            waiting: Waiting::new(),
            last: now,
        });
        Some(self.flows.len() - 1)
    }

    /// `None`: there are too many flows for another one that leaves `kept` places free.
    fn make_room(&mut self, kept: usize) -> Option<()> {
        let most = MAX_FLOWS - kept;
        if self.flows.len() >= most {
            // Those to refused targets carry nothing: they only keep the logs short.
            self.flows.retain(|flow| !matches!(flow.state, State::Muted(_)));
        }
        (self.flows.len() < most).then_some(())
    }

    fn remove(&mut self, at: usize) {
        let mut flow = self.flows.swap_remove(at);
        flow.forget_waiting(&mut self.waits);
    }

    /// Looks after one flow. False: it is gone, and another may stand in its place.
    fn drive(&mut self, cx: &mut Context<'_>, at: usize) -> bool {
        loop {
            match self.flows[at].drive(cx, &mut self.waits) {
                Drove::Fine => return true,
                // What goes where the client says needs no flow of its own: it waits for the rules.
                Drove::Found(Ok(aim)) if !aim.is_renamed() => {
                    let waiting = std::mem::take(&mut self.flows[at].waiting);
                    self.waits -= sizes(&waiting);
                    self.remove(at);
                    for (bytes, _) in &waiting {
                        self.ask(&aim, bytes);
                    }
                    return false;
                }
                Drove::Found(aim) => self.flows[at].state = self.open_own(aim),
                Drove::Over => {
                    self.remove(at);
                    return false;
                }
                Drove::Failed(error) => {
                    let refused = matches!(error, Error::Forbidden { .. } | Error::Unsupported(_));
                    self.dispatcher.failed(&self.origin, &error);
                    self.flows[at].state = State::Muted((!refused).then(|| Instant::now() + RETRY));
                    return true;
                }
            }
        }
    }

    fn drive_all(&mut self, cx: &mut Context<'_>) {
        self.take_routes(cx);
        let mut at = 0;
        while at < self.flows.len() {
            at += usize::from(self.drive(cx, at));
        }
        // Some may have been found to go by another.
        self.take_routes(cx);
    }

    /// Drops flows that nothing has moved in for as long as a connection may be idle.
    fn poll_idle(&mut self, cx: &mut Context<'_>) {
        while self.timer.as_mut().poll(cx).is_ready() {
            let (now, idle) = (Instant::now(), self.user.level.timeouts.idle);
            let mut at = 0;
            while at < self.flows.len() {
                if now >= self.flows[at].last + idle {
                    self.remove(at);
                } else {
                    at += 1;
                }
            }
            self.timer.as_mut().reset(now + look(&self.user));
        }
    }
}

fn look(user: &User) -> Duration {
    (user.level.timeouts.idle / 8).max(LOOK)
}

impl PacketEnd for Flows {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        self.drive_all(cx);
        let mut left = self.flows.len();
        while left > 0 && !self.flows.is_empty() {
            let at = self.turn % self.flows.len();
            let flow = &mut self.flows[at];
            if let State::Open(end) = &mut flow.state {
                match end.poll_recv(cx, slot) {
                    Poll::Ready(Ok(true)) => {
                        flow.last = Instant::now();
                        self.turn = at + 1;
                        return Poll::Ready(Ok(true));
                    }
                    Poll::Ready(ended) => {
                        tracing::debug!("an association of datagrams ended: {ended:?}");
                        slot.clear();
                        self.remove(at);
                        left -= 1;
                        continue;
                    }
                    Poll::Pending => {}
                }
            }
            self.turn = at + 1;
            left -= 1;
        }
        self.poll_idle(cx);
        Poll::Pending
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        let at = match self.routes.get(to).cloned() {
            Some(route) => self.flow(route, to),
            None => match self.own_flow(to).or_else(|| self.begin(bytes, to)) {
                Some(at) => Some(at),
                None => {
                    self.take_routes(cx);
                    return Poll::Ready(Ok(()));
                }
            },
        };
        if let Some(at) = at {
            ready!(self.send_by(cx, at, bytes, to));
            self.take_routes(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.drive_all(cx);
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        for flow in &mut self.flows {
            if let State::Open(end) = &mut flow.state {
                end.finish(cx);
            }
        }
    }
}

#[cfg(test)]
mod tests;
