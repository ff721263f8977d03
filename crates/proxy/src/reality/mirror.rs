//! Between a client and the target, until it is known who the client is.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use sealway_net::sock::Sock;
use sealway_tls::reality::flight::{Flight, Look, MAX_FLIGHT, Shape};
use sealway_tls::reality::gate::{Heard, Hearing, MAX_SEEN};

use super::crowd::Place;
use super::stranger::Passing;
use crate::Error;
use crate::settings::ThrottledAfter;
use crate::stats::Traffic;

/// Most bytes that wait for a target that does not take them, before the client is not read.
const MAX_BEHIND: usize = 16 << 10;

/// What the first bytes said.
pub(super) enum Said {
    /// A hello: the message, and where in what was heard it ended.
    Hello(Vec<u8>, usize),
    /// It is not to be waited for, or not to be read.
    Other(&'static str),
}

/// What the target answered to a hello that is let in.
pub(super) enum Answered {
    Flight(Shape),
    /// This target cannot be borrowed from.
    Unfit(&'static str),
}

/// A connection of which both ends are known, and not yet what it is.
pub(super) struct Mirror {
    pub(super) client: Sock,
    pub(super) target: Sock,
    /// What the client has said, and how much of it was passed on.
    pub(super) heard: Vec<u8>,
    passed: usize,
    /// What the target has said, none of which was passed on.
    pub(super) answer: Vec<u8>,
    /// Where in it a read has ended.
    pub(super) cuts: Vec<usize>,
    pub(super) traffic: Traffic,
}

impl Mirror {
    pub(super) fn new(client: Sock, read: Vec<u8>, target: Sock, traffic: &Traffic) -> Self {
        Mirror {
            client,
            target,
            heard: read,
            passed: 0,
            answer: Vec::new(),
            cuts: Vec::new(),
            traffic: traffic.clone(),
        }
    }

    /// Passes on what the client says up to the end of its hello, or until it shows that there will be none.
    pub(super) async fn hear(&mut self) -> Result<Said, Error> {
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
        match ready!(self.poll_heard(cx))? {
            0 => Poll::Ready(Ok(Some("failed to read client hello: the client said no more"))),
            _ => {
                self.pass(cx)?;
                Poll::Ready(Ok(None))
            }
        }
    }

    /// Ready when the client has said something more, or ended. It may have done so before the runtime has heard of it.
    pub(super) fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let mut piece = [0; 2048];
        let got = match self.client.read_now(&mut piece)? {
            Some(got) => got,
            None => ready!(self.client.poll_read(cx, &mut piece))?,
        };
        self.traffic.received(got);
        self.heard.extend_from_slice(&piece[..got]);
        Poll::Ready(Ok(got))
    }

    /// Passes on as much as the target takes now.
    fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        while let Some(rest @ [_, ..]) = self.heard.get(self.passed..) {
            let wrote = match self.target.write_now(rest) {
                Ok(None) => self.target.poll_write(cx, rest),
                Ok(Some(wrote)) => Poll::Ready(Ok(wrote)),
                Err(error) => Poll::Ready(Err(error)),
            };
            match wrote {
                Poll::Pending => break,
                Poll::Ready(Ok(wrote)) => self.passed += wrote,
                Poll::Ready(Err(error)) => return Err(self.broken(error)),
            }
        }
        Ok(())
    }

    /// Ready when the target has said something more, or ended.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        let mut piece = [0; 8192];
        match ready!(self.target.poll_read(cx, &mut piece)) {
            Ok(got) => {
                self.answer.extend_from_slice(&piece[..got]);
                self.cuts.push(self.answer.len());
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
    pub(super) async fn flight(&mut self) -> Result<Answered, Error> {
        let mut flight = Flight::default();
        loop {
            match flight.look(&self.answer) {
                Look::Whole(shape) => return Ok(Answered::Flight(self.behind(shape).await)),
                Look::Unfit(why) => return Ok(Answered::Unfit(why)),
                Look::Broken(why) => return Ok(Answered::Unfit(why)),
                Look::More => {}
            }
            if self.answer.len() >= MAX_FLIGHT {
                return Ok(Answered::Unfit("a flight that is too long"));
            }
            // What the target said before it broke the connection is read first.
            let got = poll_fn(|cx| {
                let answer = self.poll_answer(cx);
                if answer.is_pending() {
                    self.pass(cx)?;
                }
                answer
            });
            if got.await? == 0 {
                return Ok(Answered::Unfit("it closed the connection"));
            }
        }
    }

    /// The flight with what has come behind it already.
    async fn behind(&mut self, shape: Shape) -> Shape {
        poll_fn(|cx| {
            while self.answer.len() < MAX_FLIGHT && matches!(self.poll_answer(cx), Poll::Ready(Ok(1..))) {}
            Poll::Ready(())
        })
        .await;
        match Flight::default().look(&self.answer) {
            Look::Whole(whole) => whole,
            // An alert, say. The flight itself was whole.
            _ => shape,
        }
    }

    /// The same connection, with the target.
    pub(super) fn into_passing(self, limits: [Option<ThrottledAfter>; 2], place: Place) -> Passing {
        let waiting = self.heard.get(self.passed..).unwrap_or_default().to_vec();
        let (client, target) = ((self.client, waiting), (self.target, self.answer));
        Passing::new(client, target, limits, self.traffic, place)
    }
}
