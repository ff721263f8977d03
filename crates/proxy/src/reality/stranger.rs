//! Strangers, who stay with the target until one of the two ends it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::sock::Sock;
use tokio::time::{Instant, Sleep, sleep_until};

use super::bucket::{Bucket, MOST};
use crate::Error;
use crate::relay::Relay;
use crate::settings::{ThrottledAfter, Timeouts};
use crate::stats::Traffic;
use crate::stream::Stream;

/// How long nothing may move. The target's own patience is to show, not ours.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The connection of a stranger to the target.
pub(crate) enum Passing {
    /// As fast as it goes: inside the kernel where there is much to move.
    Free(Box<Relay>),
    /// With a limit.
    Limited(Box<Limited>),
}

impl Passing {
    /// Between a client and the target, each with what it has said already and the other has not been told.
    pub(super) fn new(
        (client, asked): (Sock, Vec<u8>),
        (target, answer): (Sock, Vec<u8>),
        [up, down]: [Option<ThrottledAfter>; 2],
        traffic: Traffic,
    ) -> Result<Self, Error> {
        if up.is_some() || down.is_some() {
            return Ok(Passing::Limited(Box::new(Limited {
                client,
                target,
                up: Way::new(asked, up),
                down: Way::new(answer, down),
                last: Instant::now(),
                traffic,
            })));
        }
        let (mut near, mut far) = (Stream::new(client, traffic), Stream::new(target, Traffic::default()));
        for (stream, said) in [(&mut near, asked), (&mut far, answer)] {
            if !said.is_empty() {
                stream.unread(&said)?;
            }
        }
        let timeouts = Timeouts {
            idle: PATIENCE,
            uplink_only: PATIENCE,
            downlink_only: PATIENCE,
        };
        Ok(Passing::Free(Box::new(Relay::new(
            near,
            far,
            timeouts,
            Traffic::default(),
        ))))
    }

    /// Goes on to the end. A side that breaks the connection breaks the other's, too.
    pub(crate) async fn run(self) -> Result<(), Error> {
        match self {
            Passing::Free(relay) => relay.run().await.map(drop),
            Passing::Limited(limited) => limited.run().await,
        }
    }
}

/// One direction with a limit.
struct Way {
    /// What was read and not written.
    held: Vec<u8>,
    written: usize,
    bucket: Option<Bucket>,
    sleep: Option<Pin<Box<Sleep>>>,
    ended: bool,
    done: bool,
}

impl Way {
    fn new(held: Vec<u8>, limit: Option<ThrottledAfter>) -> Self {
        Way {
            held,
            written: 0,
            bucket: limit.map(|limit| Bucket::new(limit, Instant::now())),
            sleep: None,
            ended: false,
            done: false,
        }
    }

    /// Moves what may be moved. Ready when this direction is over.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Sock,
        to: &mut Sock,
        moved: &mut usize,
    ) -> Poll<Result<(), std::io::Error>> {
        loop {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            if let Some(rest @ [_, ..]) = self.held.get(self.written..) {
                let wrote = ready!(to.poll_write(cx, rest))?;
                self.written += wrote;
                *moved += wrote;
                continue;
            }
            (self.held, self.written) = (Vec::new(), 0);
            if self.ended {
                ready!(to.poll_shutdown(cx))?;
                self.done = true;
                continue;
            }
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            // Bytes are granted when there are some; until then nothing is held.
            ready!(from.poll_read_ready(cx))?;
            let most = match self
                .bucket
                .as_mut()
                .map_or(Ok(MOST), |bucket| bucket.grant(Instant::now()))
            {
                Ok(most) => most,
                Err(then) => {
                    self.sleep = Some(Box::pin(sleep_until(then)));
                    continue;
                }
            };
            let mut piece = vec![0; most];
            let got = ready!(from.poll_read(cx, &mut piece))?;
            if got == 0 {
                self.ended = true;
                continue;
            }
            if let Some(bucket) = &mut self.bucket {
                bucket.take(got);
            }
            piece.truncate(got);
            self.held = piece;
        }
    }
}

/// A connection with a limit in a direction, or in both.
pub(crate) struct Limited {
    client: Sock,
    target: Sock,
    up: Way,
    down: Way,
    last: Instant,
    traffic: Traffic,
}

impl Limited {
    async fn run(mut self) -> Result<(), Error> {
        let mut timer = Box::pin(sleep_until(self.last + PATIENCE));
        let ended = poll_fn(|cx| {
            if let Poll::Ready(ended) = self.poll(cx) {
                return Poll::Ready(ended);
            }
            loop {
                ready!(timer.as_mut().poll(cx));
                if self.last.elapsed() >= PATIENCE {
                    return Poll::Ready(Ok(()));
                }
                timer.as_mut().reset(self.last + PATIENCE);
            }
        })
        .await;
        if ended.is_err() {
            self.client.reset_on_close();
            self.target.reset_on_close();
        }
        Ok(ended?)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        let (mut up, mut down) = (0, 0);
        let up_done = self.up.poll(cx, &mut self.client, &mut self.target, &mut up);
        let down_done = self.down.poll(cx, &mut self.target, &mut self.client, &mut down);
        self.traffic.received(up);
        self.traffic.sent(down);
        if up + down > 0 {
            self.last = Instant::now();
        }
        match (up_done, down_done) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }
}
