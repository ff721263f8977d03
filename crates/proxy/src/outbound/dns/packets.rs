//! Questions in datagrams.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sealway_v2ray::{Destination, Network};

use super::{Answers, Coming, MAX_ASKED};
use crate::Error;
use crate::roads::Caller;
use crate::udp::{PacketEnd, Slot};

/// An association with whoever answers.
pub(super) struct Packets {
    answers: Arc<Answers>,
    caller: Arc<Caller>,
    /// Answers to come, each with where its question went.
    asked: Vec<(Destination, Coming)>,
    /// Who waits for an answer.
    waker: Option<Waker>,
}

impl Packets {
    pub(super) fn new(answers: Arc<Answers>, caller: Caller) -> Packets {
        Packets {
            answers,
            caller: Arc::new(caller),
            asked: Vec::new(),
            waker: None,
        }
    }
}

impl PacketEnd for Packets {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        let mut at = 0;
        while at < self.asked.len() {
            match self.asked[at].1.as_mut().poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let (to, _) = self.asked.swap_remove(at);
                    if let Some(answer) = answer {
                        slot.copy(&answer, to);
                        return Poll::Ready(Ok(true));
                    }
                }
            }
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        if self.asked.len() < MAX_ASKED {
            let coming = self.answers.coming(bytes.to_vec(), Network::Udp, peer, &self.caller);
            self.asked.push((peer.clone(), coming));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        Poll::Ready(Ok(()))
    }
}
