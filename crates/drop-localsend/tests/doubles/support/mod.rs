//! Our ends and doubles of the app.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod app;
pub mod http;
pub mod sender;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver as Heard, Sender, channel};
use std::sync::{Arc, Mutex};

use sealway_drop::cancel::Cancel;
use sealway_drop::names::RelPath;
use sealway_drop_localsend::favourites::Favourites;
use sealway_drop_localsend::receive::{Peer, Receiver, Telling};
use sealway_drop_localsend::server::{Options, Running, start};
use sealway_drop_transfer::dest::{self, Answer, Destination, Existing};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::Offered;
use sealway_drop_transfer::send::Summary;
use zeroize::Zeroizing;

/// What a receiver of ours was told.
#[derive(Debug)]
pub enum Said {
    Asked(Peer, Offered),
    Message(Peer, String),
    Ended(Result<Summary, String>),
    TurnedAway(String),
    /// Nobody waits for the answer any more.
    LetGo,
}

/// A person who says yes, or who never answers.
pub struct Person {
    pub answers: bool,
    pub tell: Mutex<Sender<Said>>,
}

impl Person {
    fn say(&self, said: Said) {
        let _ = self.tell.lock().unwrap().send(said);
    }
}

impl Telling for Person {
    fn accept(&self, peer: &Peer, offer: &Offered, cancel: &Cancel) -> Result<(), String> {
        self.say(Said::Asked(peer.clone(), offer.clone()));
        if !self.answers {
            let (told, heard) = channel();
            let _watch = cancel.on_cancel(move || {
                let _ = told.send(());
            });
            heard.recv_timeout(http::LIMIT).expect("the question ends");
            self.say(Said::LetGo);
            return Err("stopped".into());
        }
        Ok(())
    }

    fn conflict(&self, _: &RelPath, _: &Existing, _: &Cancel) -> Answer {
        Answer::Rename
    }

    fn message(&self, peer: &Peer, text: &str) -> Result<(), String> {
        self.say(Said::Message(peer.clone(), text.into()));
        Ok(())
    }

    fn begun(&self, _: &Peer, _: &Arc<Progress>) {}

    fn ended(&self, _: &Peer, how: Result<Summary, sealway_drop::Error>, _: &Progress) {
        self.say(Said::Ended(how.map_err(|error| error.to_string())));
    }

    fn turned_away(&self, peer: &str, why: &str) {
        self.say(Said::TurnedAway(format!("{peer}: {why}")));
    }
}

/// A receiver of ours.
pub struct End {
    pub running: Running,
    pub address: SocketAddr,
    pub said: Heard<Said>,
}

impl End {
    pub fn next(&self) -> Said {
        tokio::task::block_in_place(|| self.said.recv_timeout(http::LIMIT)).expect("something is said")
    }

    /// Goes past what was asked, to the end of a transfer.
    pub fn end(&self) -> Result<Summary, String> {
        loop {
            if let Said::Ended(how) = self.next() {
                return how;
            }
        }
    }
}

pub async fn node(receiver: Option<Receiver>, clear: bool) -> Running {
    let options = Options {
        alias: "Ours".into(),
        port: Some(0),
        clear,
        discover: false,
        folder: None,
    };
    start(options, receiver, |_| {}).await.unwrap()
}

pub struct Wishes {
    pub answers: bool,
    pub pin: Option<&'static str>,
    pub favourites: Option<Favourites>,
    pub conflict: dest::Conflict,
}

pub const YES: Wishes = Wishes {
    answers: true,
    pin: None,
    favourites: None,
    conflict: dest::Conflict::Rename,
};

pub async fn receiver(output: &Path, wishes: Wishes) -> End {
    let (tell, said) = channel();
    let person = Person {
        answers: wishes.answers,
        tell: Mutex::new(tell),
    };
    let options = dest::Options {
        conflict: wishes.conflict,
        ..dest::Options::default()
    };
    let destination = Destination::open(output, options).unwrap();
    let pin = wishes.pin.map(|pin| Zeroizing::new(pin.to_owned()));
    let receiver = Receiver::new(destination, wishes.favourites, pin, Arc::new(person));
    let running = node(Some(receiver), false).await;
    let address = ([127, 0, 0, 1], running.node.port()).into();
    End { running, address, said }
}

/// What a file holds.
pub fn content(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) >> 3) as u8 ^ seed).collect()
}
