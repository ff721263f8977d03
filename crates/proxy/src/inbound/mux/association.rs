//! Associations of datagrams in a mux, which may outlive the carrier that they began on.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use sealway_v2ray::Destination;
use sealway_v2ray::mux::GlobalId;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::Error;
use crate::dispatch::{Dispatcher, Origin, User};
use crate::inbound::flows::{Flows, Shares};
use crate::inbound::local::{AnswerInTurn, Reply};
use crate::mux::{Batch, Link, Owner, PacketInbox, Turn, push_datagram};
use crate::stats::Traffic;

/// Associations of one user that are found again.
pub(super) const MAX_PER_USER: usize = 256;
/// How long an association without a carrier waits for the next.
const KEPT: Duration = Duration::from_secs(60);
/// How often it is looked at whether an association is in use, at most.
const LOOK: Duration = Duration::from_secs(5);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under these locks can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The associations of an inbound that are found again, by user and id: an id alone would let one user take over what
/// belongs to another.
#[derive(Default)]
pub(crate) struct Associations {
    /// Associations hold their users, so that nobody else has the key of one meanwhile.
    known: Mutex<HashMap<usize, HashMap<GlobalId, Arc<Association>>>>,
    /// All that are served, known or not. They end with the inbound.
    tasks: Mutex<JoinSet<()>>,
}

impl Associations {
    /// The association of this id, unless it was begun by somebody who may reach other targets than who looks for it: `remote`
    /// says whether that one comes from outside.
    pub(super) fn find(&self, user: &Arc<User>, remote: bool, global: GlobalId) -> Option<Arc<Association>> {
        let found = lock(&self.known).get(&user.key())?.get(&global).map(Arc::clone);
        found.filter(|association| association.remote == remote && !association.is_over())
    }

    /// Remembers an association. Where there are too many, one that has no carrier is forgotten, or this one is not found
    /// again.
    pub(super) fn add(self: &Arc<Self>, association: &Arc<Association>, global: GlobalId) {
        let mut users = lock(&self.known);
        let own = users.entry(association.user.key()).or_default();
        if own.len() >= MAX_PER_USER {
            let oldest = own.iter().filter_map(|(id, other)| Some((other.without_since()?, *id)));
            let Some((_, oldest)) = oldest.min_by_key(|(since, _)| *since) else {
                return;
            };
            if let Some(oldest) = own.remove(&oldest) {
                oldest.end();
            }
        }
        lock(&association.state).found = Some((Arc::downgrade(self), global));
        if let Some(old) = own.insert(global, Arc::clone(association)) {
            old.end();
        }
    }

    fn remove(&self, association: &Association, global: GlobalId) {
        let mut users = lock(&self.known);
        if let Some(own) = users.get_mut(&association.user.key()) {
            if own
                .get(&global)
                .is_some_and(|known| std::ptr::eq(&**known, association))
            {
                own.remove(&global);
            }
            if own.is_empty() {
                users.remove(&association.user.key());
            }
        }
    }

    /// Serves an association.
    pub(super) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(serving);
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.known).values().map(HashMap::len).sum()
    }
}

/// An association: one program's datagrams, to and from any address.
pub(super) struct Association {
    user: Arc<User>,
    /// It was begun from outside.
    remote: bool,
    inbox: Arc<PacketInbox>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The carrier that it is on, with its id there. `None`: it waits for one.
    on: Option<(Arc<Link>, u16, u64)>,
    /// How many it has been on.
    carriers: u64,
    /// Since when it has no carrier.
    without: Option<Instant>,
    /// Where it is found, under which id.
    found: Option<(Weak<Associations>, GlobalId)>,
    over: bool,
}

impl Association {
    pub(super) fn new(user: Arc<User>, remote: bool, waiting: Arc<AtomicUsize>) -> Arc<Association> {
        Arc::new(Association {
            user,
            remote,
            inbox: PacketInbox::new(waiting),
            state: Mutex::default(),
        })
    }

    pub(super) fn inbox(&self) -> Arc<PacketInbox> {
        Arc::clone(&self.inbox)
    }

    /// From now on the client is on this carrier. The session that it had on another is ended there. False: it is over.
    pub(super) fn attach(&self, link: Arc<Link>, id: u16, serial: u64) -> bool {
        let mut state = lock(&self.state);
        if state.over {
            return false;
        }
        let old = state.on.replace((link, id, serial));
        state.carriers += 1;
        state.without = None;
        drop(state);
        if let Some((link, id, serial)) = old {
            link.push_end(id, false);
            link.leave(id, serial, false);
            // Answers may wait for their turn there.
            link.nudge();
        }
        true
    }

    fn without_since(&self) -> Option<Instant> {
        lock(&self.state).without
    }

    fn is_over(&self) -> bool {
        lock(&self.state).over
    }

    /// Ends it: what waits is lost.
    fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        let on = state.on.take();
        drop(state);
        if let Some((link, id, serial)) = on {
            link.push_end(id, false);
            link.leave(id, serial, false);
        }
        if let Some(waker) = self.inbox.end() {
            waker.wake();
        }
    }

    /// Serves it to its end.
    pub(super) async fn run(self: Arc<Self>, serving: impl Future<Output = ()>) {
        serving.await;
        self.end();
        let found = lock(&self.state).found.take();
        if let Some((associations, global)) = found
            && let Some(associations) = associations.upgrade()
        {
            associations.remove(&self, global);
        }
    }

    /// Sends what comes to where it goes, until the client has sent nothing for as long as the policy allows and its flows
    /// are over, or nobody waits for it.
    pub(super) fn serve(
        self: &Arc<Self>,
        dispatcher: Arc<Dispatcher>,
        origin: Origin,
        shares: Shares,
    ) -> impl Future<Output = ()> + use<> {
        let association = Arc::clone(self);
        async move {
            let idle = association.user.level.timeouts.idle;
            let mut flows = Flows::new(dispatcher, Arc::clone(&association.user), Traffic::default()).sharing(&shares);
            let (mut batch, mut last) = (Batch::default(), Instant::now());
            loop {
                let taking = poll_fn(|cx| association.inbox.poll_take(cx, &mut batch));
                match timeout(LOOK.min(idle), taking).await {
                    Ok(true) => last = Instant::now(),
                    Ok(false) => return,
                    Err(_) => match association.without_since() {
                        Some(since) if since.elapsed() >= KEPT => return,
                        None if last.elapsed() >= idle && flows.are_over() => return,
                        _ => continue,
                    },
                }
                while let Some((to, bytes)) = batch.next() {
                    let Some(datagram) = shares.asked.keep(bytes, to) else {
                        continue;
                    };
                    let reply = Reply::Session(Arc::clone(&association) as Arc<dyn AnswerInTurn>);
                    flows.carry(&origin, datagram, reply).await;
                }
            }
        }
    }
}

impl AnswerInTurn for Association {
    /// Sends a datagram to the client, or nowhere while it has no carrier.
    fn poll_answer(
        &self,
        cx: &mut Context<'_>,
        turn: &mut Turn,
        bytes: &[u8],
        from: &Destination,
    ) -> Poll<Result<(), Error>> {
        let state = lock(&self.state);
        let Some((link, id, _)) = &state.on else {
            return Poll::Ready(Ok(()));
        };
        match push_datagram(link, cx, turn.on(state.carriers), *id, from, bytes) {
            Poll::Pending => Poll::Pending,
            // The carrier is lost, which concerns this datagram only.
            Poll::Ready(_) => Poll::Ready(Ok(())),
        }
    }
}

impl Owner for Association {
    fn left(&self, link: usize, serial: u64) {
        let mut state = lock(&self.state);
        // It may be on another carrier already.
        if !state
            .on
            .as_ref()
            .is_some_and(|(on, _, own)| Arc::as_ptr(on) as usize == link && *own == serial)
        {
            return;
        }
        if let Some((link, ..)) = state.on.take() {
            link.nudge();
        }
        if state.found.is_some() {
            state.without = Some(Instant::now());
            return;
        }
        drop(state);
        if let Some(waker) = self.inbox.end() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::mux::BaseKey;

    use super::*;

    fn id(number: u16) -> GlobalId {
        let source = std::net::SocketAddr::from(([127, 0, 0, 1], number));
        GlobalId::new(&BaseKey::from_bytes([1; 32]), source)
    }

    fn add(associations: &Arc<Associations>, user: &Arc<User>, number: u16) -> Arc<Association> {
        let association = Association::new(Arc::clone(user), false, Arc::default());
        association.attach(Link::new(), 0, 1);
        associations.add(&association, id(number));
        association
    }

    #[test]
    fn a_user_has_256_associations_that_are_found_again() {
        let associations = Arc::<Associations>::default();
        let (one, other) = (Arc::<User>::default(), Arc::<User>::default());
        let all: Vec<_> = (0..300).map(|number| add(&associations, &one, number)).collect();
        assert_eq!(associations.len(), MAX_PER_USER);
        assert!(associations.find(&one, false, id(255)).is_some() && associations.find(&one, false, id(256)).is_none());
        // Who comes from outside does not take over what was begun on this machine.
        assert!(associations.find(&one, true, id(255)).is_none());
        // That is nothing to others, and ids are not shared.
        assert!(associations.find(&other, false, id(1)).is_none());
        add(&associations, &other, 1);
        assert_eq!(associations.len(), MAX_PER_USER + 1);
        // One that waits for a carrier makes room.
        let link = lock(&all[7].state)
            .on
            .as_ref()
            .map(|(link, ..)| Arc::as_ptr(link) as usize)
            .unwrap();
        all[7].left(link, 2);
        assert!(all[7].without_since().is_none(), "another session is not its own");
        all[7].left(link, 1);
        add(&associations, &one, 300);
        assert!(associations.find(&one, false, id(7)).is_none() && associations.find(&one, false, id(300)).is_some());
        assert!(all[7].is_over());
    }
}
