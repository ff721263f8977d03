//! A double of the app as a sender.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::End;
use super::http::{Card, Message, Wire};

pub const PREPARE: &str = "/api/localsend/v2/prepare-upload";
pub const CANCEL: &str = "/api/localsend/v2/cancel";

/// A double that sends, with one certificate.
pub struct Sender {
    pub card: Card,
    pub to: SocketAddr,
    pub shows: bool,
}

/// What a receiver wants: the session, and tokens by ids.
pub struct Wanted {
    pub session: String,
    pub tokens: Value,
}

impl Wanted {
    /// Where a file is sent to. Nothing of it is encoded, as in the app.
    pub fn target(&self, id: &str) -> String {
        let (session, token) = (&self.session, self.tokens[id].as_str().unwrap());
        format!("/api/localsend/v2/upload?sessionId={session}&fileId={id}&token={token}")
    }
}

impl Sender {
    /// 1.18 and 1.17.
    pub const BOTH: [fn(&End) -> Sender; 2] = [Sender::to, Sender::v117];

    pub fn to(end: &End) -> Sender {
        Sender {
            card: Card::new(),
            to: end.address,
            shows: true,
        }
    }

    /// 1.17 as a client shows no certificate.
    pub fn v117(end: &End) -> Sender {
        Sender {
            shows: false,
            ..Sender::to(end)
        }
    }

    pub fn connect(&self) -> Wire {
        Wire::connect(self.to, Some(self.card.client(self.shows)))
    }

    pub fn info(&self) -> Value {
        json!({"alias": "Nice Orange", "version": "2.1", "deviceModel": "Pixel", "deviceType": "mobile",
            "fingerprint": self.card.fingerprint().to_string(), "port": 53317, "protocol": "https", "download": false})
    }

    pub fn offer(&self, files: &[(&str, &[u8])]) -> Value {
        let file = |(at, (name, bytes)): (usize, &(&str, &[u8]))| {
            let modified = "2026-08-01T10:20:30.456Z";
            let file = json!({"id": at.to_string(), "fileName": name, "size": bytes.len(), "fileType": "application/octet-stream",
                "sha256": null, "preview": null, "metadata": {"modified": modified, "accessed": modified}});
            (at.to_string(), file)
        };
        let files: serde_json::Map<_, _> = files.iter().enumerate().map(file).collect();
        json!({"info": self.info(), "files": files})
    }

    pub fn prepare(&self, offer: &Value) -> Message {
        self.connect().ask("POST", PREPARE, offer.to_string().as_bytes())
    }

    /// Cancels what is wanted of it, or what nobody has answered yet.
    pub fn cancel(&self, wanted: Option<&Wanted>) -> u16 {
        let target = match wanted {
            Some(wanted) => format!("{CANCEL}?sessionId={}", wanted.session),
            None => CANCEL.to_owned(),
        };
        self.connect().ask("POST", &target, b"").status()
    }

    pub fn accepted(&self, offer: &Value) -> Wanted {
        let answer = self.prepare(offer);
        assert_eq!(answer.status(), 200, "{answer:?}");
        let mut answer = answer.json();
        Wanted {
            session: answer["sessionId"].as_str().unwrap().to_owned(),
            tokens: answer["files"].take(),
        }
    }

    pub fn send(&self, wire: &mut Wire, wanted: &Wanted, id: &str, bytes: &[u8]) -> u16 {
        let target = wanted.target(id);
        match self.shows {
            true => wire.ask_in_chunks(&target, bytes).status(),
            false => wire.ask("POST", &target, bytes).status(),
        }
    }
}
