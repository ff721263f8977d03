//! Futures that are polled once and dropped, at every point.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sealway_bip324::message::Message;
use sealway_bip324::{Magic, Options};
use sealway_bip324_tokio::v1::{V1Receiver, V1Sender};
use tokio::runtime::{Builder, Runtime};

use crate::{Choppy, contents, pair_over};

/// A runtime for timers. Nothing is polled by it: what waits stays where it is.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// Polls a future once and drops it.
fn once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Lengths of messages for pieces of `most` bytes: a few pieces each.
fn lengths(most: usize) -> [usize; 6] {
    [0, 1, most, 3 * most + 1, 40, 2 * most]
}

#[test]
fn a_message_given_up_is_not_sent_and_one_taken_comes_once() {
    let runtime = runtime();
    let _within = runtime.enter();
    for most in [1, 2, 19, 20, 21, 1000, 70_000] {
        for output_limit in [1, 50, 1 << 20] {
            let (a, b) = tokio::io::duplex(2 * most);
            let mut options = Options::default();
            options.output_limit = output_limit;
            let (a, b) = runtime.block_on(pair_over(a, b, options));
            let (_, mut sender) = a.split_with(|io| tokio::io::split(Choppy::new(io, most, false)));
            let (mut receiver, _) = b.split_with(|io| tokio::io::split(Choppy::new(io, most, false)));
            let (mut taken, mut came) = (0, 0);
            let mut given_up = 0;
            for turn in 0.. {
                if taken < 30 {
                    let message = contents(taken, lengths(most)[taken % 6]);
                    // In turn the two ways of sending, and dropping either at its only point.
                    let done = match turn % 2 {
                        0 => once(sender.send(&message)),
                        _ => once(sender.feed_parts(&[&message[..message.len() / 2], &message[message.len() / 2..]])),
                    };
                    match done {
                        Some(done) => {
                            done.unwrap();
                            taken += 1;
                        }
                        None => given_up += 1,
                    }
                } else if once(sender.flush()).is_some() && came == 30 {
                    break;
                }
                match once(receiver.recv()) {
                    Some(message) => {
                        let want = contents(came, lengths(most)[came % 6]);
                        assert!(
                            message.unwrap() == Some(&want[..]),
                            "message {came} in pieces of {most}"
                        );
                        came += 1;
                    }
                    None => given_up += 1,
                }
            }
            assert!(given_up > 0, "nothing was ever given up");
            assert_eq!((sender.sent().messages, receiver.received().messages), (30, 30));
            assert_eq!(sender.waiting(), 0);
            while once(sender.shutdown()).is_none() {}
            let end = loop {
                if let Some(end) = once(receiver.recv()) {
                    break end;
                }
            };
            assert!(end.unwrap().is_none());
        }
    }
}

#[test]
fn both_directions_of_one_task() {
    let runtime = runtime();
    let _within = runtime.enter();
    let (a, b) = tokio::io::duplex(64);
    let (a, b) = (Choppy::new(a, 7, true), Choppy::new(b, 7, true));
    let (mut a, mut b) = runtime.block_on(pair_over(a, b, Options::default()));
    let mut came = [0; 2];
    let mut taken = [0; 2];
    while came != [20, 20] {
        for (at, end) in [&mut a, &mut b].into_iter().enumerate() {
            if taken[at] < 20
                && let Some(done) = once(end.send(&contents(100 * at + taken[at], 50)))
            {
                done.unwrap();
                taken[at] += 1;
            }
            if let Some(message) = once(end.recv()) {
                let want = contents(100 * (1 - at) + came[at], 50);
                assert!(message.unwrap() == Some(&want[..]));
                came[at] += 1;
            }
        }
    }
}

#[test]
fn v1_messages_keep_the_same_promise() {
    let runtime = runtime();
    let _within = runtime.enter();
    for most in [1, 23, 24, 25, 5000] {
        let (a, b) = tokio::io::duplex(2 * most);
        let mut sender = V1Sender::new(Choppy::new(a, most, false), Magic::SIGNET, 50);
        let mut receiver = V1Receiver::new(Choppy::new(b, most, false), Magic::SIGNET, 1 << 20, Vec::new());
        let (mut taken, mut came) = (0, 0);
        while came < 30 {
            if taken < 30 {
                let payload = contents(taken, lengths(most)[taken % 6]);
                let message = Message {
                    command: "tx".parse().unwrap(),
                    payload: &payload,
                };
                if let Some(done) = once(sender.feed(&message)) {
                    done.unwrap();
                    taken += 1;
                }
            } else {
                let _ = once(sender.flush());
            }
            if let Some(message) = once(receiver.recv()) {
                let message = message.unwrap().unwrap();
                assert_eq!(message.command.name(), "tx");
                assert!(message.payload == contents(came, lengths(most)[came % 6]));
                came += 1;
            }
        }
        while once(sender.shutdown()).is_none() {}
        let end = loop {
            if let Some(end) = once(receiver.recv()) {
                break end;
            }
        };
        assert_eq!(end.unwrap(), None);
        assert_eq!((sender.sent().messages, receiver.received().messages), (30, 30));
        assert_eq!(sender.sent().bytes, receiver.received().bytes);
    }
}
