//! What is held of a person while something of his is carried.

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::gone::Waiter;
use super::{Budget, Member, Refused, Way};

/// Waits for the end of a membership: the user is removed from his inbound.
#[derive(Debug)]
pub(crate) struct Watch {
    /// `None`: nobody in particular, who is never removed.
    member: Option<Arc<Member>>,
    waiter: Waiter,
}

impl Watch {
    pub(crate) fn new(member: Option<Arc<Member>>) -> Watch {
        Watch {
            member,
            waiter: Waiter::default(),
        }
    }

    /// Ready when the user is gone. Costs a load where it has been asked before by the same task.
    #[inline]
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.member {
            Some(member) => self.waiter.poll(member.gone(), cx),
            None => Poll::Pending,
        }
    }

    /// What a future gives. `None`: the user was gone before; the future is dropped when this returns.
    pub(crate) async fn unless_gone<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match self.poll_gone(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(member) = &self.member {
            self.waiter.leave(member.gone());
        }
    }
}

/// Held while a connection, a stream of a mux or an association of somebody is carried: it counts as one of his, and what moves
/// in it is counted as his.
#[derive(Debug)]
pub(crate) struct Presence {
    watch: Watch,
    /// The address that it is listed under.
    listed: Option<IpAddr>,
    /// The network that it is counted under, where those are limited.
    counted: Option<IpAddr>,
}

impl Default for Presence {
    fn default() -> Self {
        Presence::nobody()
    }
}

impl Presence {
    /// Of a stranger, or of nobody in particular.
    pub(crate) fn nobody() -> Presence {
        Presence {
            watch: Watch::new(None),
            listed: None,
            counted: None,
        }
    }

    /// Of a user.
    ///
    /// # Errors
    /// [`Refused`] says why he may not have another.
    pub(crate) fn of(member: &Arc<Member>, from: Option<IpAddr>) -> Result<Presence, Refused> {
        if member.gone().is() {
            return Err(Refused::Removed);
        }
        let person = &member.person;
        let others = person.connections.fetch_add(1, Ordering::Relaxed);
        let entered = match person.budget() {
            Some(budget) => budget.enter(others, from, Instant::now()),
            None => Ok(None),
        };
        let counted = entered.inspect_err(|_| {
            person.connections.fetch_sub(1, Ordering::Relaxed);
        })?;
        let listed = person.arrive(member, from);
        Ok(Presence {
            counted,
            watch: Watch::new(Some(Arc::clone(member))),
            listed,
        })
    }

    /// Accounts for payload that came from the client.
    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        if let Some(member) = &self.watch.member
            && member.level.count_uplink
        {
            member.person.up.add(bytes);
        }
    }

    /// Accounts for payload that went to the client.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        if let Some(member) = &self.watch.member
            && member.level.count_downlink
        {
            member.person.down.add(bytes);
        }
    }

    /// What the user may take, where that is limited or kept. Whoever carries asks it before each read.
    #[inline]
    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.watch.member.as_ref()?.person.budget()
    }

    /// Accounts for payload in what the user may take, if that is limited or kept.
    #[inline]
    pub(crate) fn count(&self, way: Way, bytes: usize) {
        if let Some(budget) = self.budget() {
            budget.count(way, bytes);
        }
    }

    /// Ready when the user is gone. See [`Watch::poll_gone`].
    #[inline]
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.watch.poll_gone(cx)
    }

    /// See [`Watch::unless_gone`].
    pub(crate) fn unless_gone<F: Future>(&mut self, future: F) -> impl Future<Output = Option<F::Output>> {
        self.watch.unless_gone(future)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(member) = &self.watch.member {
            if let (Some(budget), Some(from)) = (member.person.budget(), self.counted) {
                budget.leave(from, Instant::now());
            }
            member.person.depart(self.listed);
        }
    }
}
