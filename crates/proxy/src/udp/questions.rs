//! Datagrams to targets of which something has to be found out first: what the rules say, or an address. Who waits for one
//! answer keeps nobody else waiting.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sealway_v2ray::Destination;

/// Questions that one association asks at once. Datagrams that would take another one are dropped.
pub(crate) const MAX_ASKED: usize = 8;

/// Datagrams that wait, each with where it goes.
pub(crate) type Waiting = VecDeque<(Vec<u8>, Destination)>;

/// What a datagram that waits takes: one of no bytes takes something too.
pub(crate) fn size(bytes: &[u8]) -> usize {
    bytes.len() + size_of::<(Vec<u8>, Destination)>()
}

/// What all of these take.
pub(crate) fn sizes(waiting: &Waiting) -> usize {
    waiting.iter().map(|(bytes, _)| size(bytes)).sum()
}

/// An answer to come.
pub(crate) type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

struct Question<T> {
    about: Destination,
    answer: Answer<T>,
    waiting: Waiting,
}

/// Questions about targets, and the datagrams that wait for their answers.
pub(crate) struct Questions<T> {
    asked: Vec<Question<T>>,
    waits: usize,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Questions {
            asked: Vec::new(),
            waits: 0,
        }
    }
}

impl<T> Questions<T> {
    /// Bytes of datagrams that wait.
    pub(crate) fn waits(&self) -> usize {
        self.waits
    }

    /// Whether an answer about a target is to come.
    pub(crate) fn is_asked(&self, about: &Destination) -> bool {
        self.asked.iter().any(|question| question.about == *about)
    }

    /// Lets a datagram to `to` wait for the answer about a target, which `ask` is called for if nobody has. It is dropped if
    /// more than `room` bytes would wait, or too many questions are open.
    pub(crate) fn put(
        &mut self,
        about: &Destination,
        (bytes, to): (&[u8], &Destination),
        room: usize,
        ask: impl FnOnce() -> Answer<T>,
    ) {
        if self.waits + size(bytes) > room {
            return;
        }
        let at = match self.asked.iter().position(|question| question.about == *about) {
            Some(at) => at,
            None if self.asked.len() < MAX_ASKED => {
                self.asked.push(Question {
                    about: about.clone(),
                    answer: ask(),
                    waiting: Waiting::new(),
                });
                self.asked.len() - 1
            }
            None => return,
        };
        self.waits += size(bytes);
        self.asked[at].waiting.push_back((bytes.to_vec(), to.clone()));
    }

    /// An answer that has come, with what it is about and what has waited for it. `None`: there is none yet, and the task
    /// is woken for the next.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Option<(Destination, T, Waiting)> {
        let asked = self.asked.iter_mut().enumerate();
        let (at, found) = asked
            .filter_map(|(at, question)| match question.answer.as_mut().poll(cx) {
                Poll::Ready(found) => Some((at, found)),
                Poll::Pending => None,
            })
            .next()?;
        let question = self.asked.remove(at);
        self.waits -= sizes(&question.waiting);
        Some((question.about, found, question.waiting))
    }
}
