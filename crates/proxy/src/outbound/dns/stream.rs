//! Questions in a stream, each behind two bytes that hold its length.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sealway_v2ray::{Destination, Network};

use super::{Answers, Coming, MAX_ASKED};
use crate::carrier::Virtual;
use crate::roads::Caller;

/// Bytes of answers that may wait to be read before no more is asked.
const MAX_WAITING: usize = 128 << 10;

/// Answers that wait to be read.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Bytes of them that have been read.
    read: usize,
}

impl Waiting {
    fn len(&self) -> usize {
        self.bytes.len() - self.read
    }

    fn push(&mut self, answer: &[u8]) {
        // No answer is longer.
        let Ok(len) = u16::try_from(answer.len()) else { return };
        if self.read > self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(&len.to_be_bytes());
        self.bytes.extend_from_slice(answer);
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        let n = into.len().min(self.len());
        into[..n].copy_from_slice(&self.bytes[self.read..self.read + n]);
        self.read += n;
        if self.len() == 0 {
            *self = Waiting::default();
        }
        n
    }
}

/// The other end of a stream of questions. Answers come in whatever order they are ready.
pub(super) struct Conversation {
    answers: Arc<Answers>,
    caller: Arc<Caller>,
    to: Destination,
    /// What has come of the next question.
    question: Vec<u8>,
    asked: Vec<Coming>,
    out: Waiting,
    /// No more questions come.
    ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Conversation {
    pub(super) fn new(answers: Arc<Answers>, to: Destination, caller: Caller) -> Conversation {
        Conversation {
            answers,
            caller: Arc::new(caller),
            to,
            question: Vec::new(),
            asked: Vec::new(),
            out: Waiting::default(),
            ended: false,
            reader: None,
            writer: None,
        }
    }

    fn has_room(&self) -> bool {
        self.asked.len() < MAX_ASKED && self.out.len() < MAX_WAITING
    }

    /// Takes the answers that are ready, while those that wait are few.
    fn collect(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while at < self.asked.len() && self.out.len() < MAX_WAITING {
            let Poll::Ready(answer) = self.asked[at].as_mut().poll(cx) else {
                at += 1;
                continue;
            };
            drop(self.asked.swap_remove(at));
            if let Some(answer) = answer {
                self.out.push(&answer);
            }
        }
    }

    fn wake(waker: &mut Option<Waker>) {
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }
}

impl Virtual for Conversation {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.collect(cx);
        if self.out.len() > 0 || self.ended && self.asked.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.reader = Some(cx.waker().clone());
        if self.has_room() {
            Self::wake(&mut self.writer);
        }
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.poll_read_ready(cx)?.is_pending() {
            return Poll::Pending;
        }
        let n = self.out.read(into);
        if self.has_room() {
            Self::wake(&mut self.writer);
        }
        Poll::Ready(Ok(n))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !self.has_room() {
            self.writer = Some(cx.waker().clone());
            // The reader polls what is asked; it may be another task.
            Self::wake(&mut self.reader);
            return Poll::Pending;
        }
        let mut took = 0;
        while took < from.len() && self.has_room() {
            let wanted = match self.question.as_slice() {
                [high, low, ..] => 2 + usize::from(u16::from_be_bytes([*high, *low])),
                _ => 2,
            };
            let n = (wanted - self.question.len()).min(from.len() - took);
            self.question.extend_from_slice(&from[took..took + n]);
            took += n;
            let whole = match self.question.as_slice() {
                [high, low, rest @ ..] => rest.len() == usize::from(u16::from_be_bytes([*high, *low])),
                _ => false,
            };
            if whole {
                let question = self.question.split_off(2);
                self.question.clear();
                self.asked
                    .push(self.answers.coming(question, Network::Tcp, &self.to, &self.caller));
            }
        }
        Self::wake(&mut self.reader);
        Poll::Ready(Ok(took))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended = true;
        Self::wake(&mut self.reader);
        Poll::Ready(Ok(()))
    }

    fn reset_on_close(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_never_done_keeps_no_more_than_it_has_to_read() {
        let mut waiting = Waiting::default();
        let (mut pushed, mut read) = (Vec::new(), Vec::new());
        let (mut most, mut piece) = (0, vec![0; 61_000]);
        for n in 0..2000u32 {
            while waiting.len() < MAX_WAITING {
                let answer = vec![n as u8; 60_000 + (n as usize * 7) % 5000];
                waiting.push(&answer);
                pushed.push((answer[0], answer.len()));
            }
            let n = waiting.read(&mut piece);
            read.extend_from_slice(&piece[..n]);
            most = most.max(waiting.bytes.capacity());
            while read.len() > 2 && read.len() >= 2 + usize::from(u16::from_be_bytes([read[0], read[1]])) {
                let len = usize::from(u16::from_be_bytes([read[0], read[1]]));
                assert_eq!((read[2], len), pushed.remove(0));
                read.drain(..2 + len);
            }
        }
        assert!(most <= 1 << 20, "{most} bytes are kept");
    }
}
