//! Doubles of the app as a receiver: as strict as 1.18, or as 1.17.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use rustls::ClientConfig;
use sealway_drop_localsend::fingerprint::Fingerprint;
use serde_json::{Value, json};

use super::http::{Card, Message, Wire};

/// What the person at the double does.
#[derive(Clone, Debug, PartialEq)]
pub enum Person {
    Accepts,
    AcceptsOnly(Vec<&'static str>),
    Declines,
    HasAll,
    NeverAnswers,
}

/// How a double behaves.
#[derive(Clone)]
pub struct Rules {
    /// 1.18: a client certificate is demanded.
    pub is_118: bool,
    pub clear: bool,
    pub person: Person,
    pub pin: Option<&'static str>,
    /// Uploads that are answered with 422 at first.
    pub wrong_hashes: u32,
    /// Uploads wait until somebody cancels.
    pub stalls: bool,
    /// The session is over when uploads come, and nobody was told.
    pub forgets: bool,
}

impl Rules {
    pub fn v118() -> Rules {
        Rules {
            is_118: true,
            clear: false,
            person: Person::Accepts,
            pin: None,
            wrong_hashes: 0,
            stalls: false,
            forgets: false,
        }
    }

    pub fn v117() -> Rules {
        Rules {
            is_118: false,
            ..Rules::v118()
        }
    }

    pub fn both() -> [Rules; 2] {
        [Rules::v118(), Rules::v117()]
    }
}

/// What a double was told, in order.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Offer(Value),
    File(String, Vec<u8>),
    Cancel(Option<String>),
}

pub struct App {
    pub address: SocketAddr,
    pub fingerprint: Fingerprint,
    pub heard: Receiver<Heard>,
    state: Arc<Mutex<State>>,
}

struct State {
    rules: Rules,
    card: Card,
    own: String,
    /// The one slot: who has it, and its files with their sizes and names; taken out when they are there.
    slot: Option<Slot>,
    guesses: u32,
    tell: Sender<Heard>,
}

struct Slot {
    open: bool,
    who: Option<Fingerprint>,
    files: HashMap<String, (u64, String)>,
}

impl App {
    pub fn start(rules: Rules) -> App {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, card, (tell, heard)) = (listener.local_addr().unwrap(), Card::new(), channel());
        let fingerprint = card.fingerprint();
        let own = match rules.is_118 {
            true => fingerprint.to_string(),
            false => fingerprint.to_string().to_lowercase(),
        };
        let state = State {
            rules,
            card,
            own,
            slot: None,
            guesses: 0,
            tell,
        };
        let state = Arc::new(Mutex::new(state));
        let app = App {
            address,
            fingerprint,
            heard,
            state: state.clone(),
        };
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let state = state.clone();
                std::thread::spawn(move || {
                    let config = {
                        let state = state.lock().unwrap();
                        (!state.rules.clear).then(|| state.card.server(state.rules.is_118))
                    };
                    let Some(mut wire) = Wire::accept(tcp.unwrap(), config) else {
                        return;
                    };
                    while let Some(request) = wire.read() {
                        answer(&state, &mut wire, request);
                    }
                });
            }
        });
        app
    }

    /// From now on it is another device in the same place.
    pub fn change_certificate(&self) {
        self.state.lock().unwrap().card = Card::new();
    }

    /// How it connects to others: 1.17 shows no certificate.
    pub fn client(&self) -> Arc<ClientConfig> {
        let state = self.state.lock().unwrap();
        state.card.client(state.rules.is_118)
    }

    pub fn is_free(&self) -> bool {
        self.state.lock().unwrap().slot.is_none()
    }
}

fn parameter(request: &Message, name: &str) -> Option<String> {
    let target = request.line.split(' ').nth(1).unwrap();
    let (_, query) = target.split_once('?')?;
    let pair = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(&format!("{name}=")))?;
    Some(pair.to_owned())
}

fn answer(state: &Mutex<State>, wire: &mut Wire, request: Message) {
    let path = request.line.split([' ', '?']).nth(1).unwrap().to_owned();
    let mut state = state.lock().unwrap();
    match path.as_str() {
        "/api/localsend/v2/register" => {
            let body = request.json();
            for key in ["alias", "version", "fingerprint", "port", "protocol"] {
                assert!(body.get(key).is_some(), "{key} is missing: {body}");
            }
            if let Some(certificate) = wire.certificate {
                assert_eq!(body["fingerprint"].as_str(), Some(certificate.to_string().as_str()));
            }
            let own = json!({"alias": "Double", "version": "2.1", "deviceModel": null, "deviceType": "desktop", "fingerprint": state.own, "download": false});
            drop(state);
            wire.answer(200, &own.to_string());
        }
        "/api/localsend/v2/prepare-upload" => prepare(state, wire, &request),
        "/api/localsend/v2/upload" => upload(state, wire, request),
        "/api/localsend/v2/cancel" => {
            state.slot = None;
            let _ = state.tell.send(Heard::Cancel(parameter(&request, "sessionId")));
            drop(state);
            wire.answer(200, "");
        }
        _ => wire.answer(404, ""),
    }
}

fn prepare(mut state: std::sync::MutexGuard<'_, State>, wire: &mut Wire, request: &Message) {
    let busy = state.slot.is_some();
    if !state.rules.is_118 && busy {
        return wire.answer(409, r#"{"message":"Blocked by another session"}"#);
    }
    if let Some(pin) = state.rules.pin {
        if state.guesses >= 3 {
            return wire.answer(429, r#"{"message":"Too many attempts"}"#);
        }
        match parameter(request, "pin") {
            None => return wire.answer(401, r#"{"message":"PIN required"}"#),
            Some(given) if given != pin => {
                state.guesses += 1;
                return wire.answer(401, r#"{"message":"Invalid PIN"}"#);
            }
            Some(_) => {}
        }
    }
    if request.head("content-type") != Some("application/json") || request.head("content-length").is_none() {
        return wire.answer(400, r#"{"message":"Request body malformed"}"#);
    }
    let offer = request.json();
    for key in ["alias", "version", "fingerprint", "port", "protocol"] {
        assert!(offer["info"].get(key).is_some(), "{key} is missing: {offer}");
    }
    if busy {
        return wire.answer(409, r#"{"message":"Blocked by another session"}"#);
    }
    let mut files = HashMap::new();
    for (id, file) in offer["files"].as_object().unwrap() {
        assert_eq!(file["id"].as_str(), Some(id.as_str()));
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'), "{id}");
        assert!(file["fileType"].is_string());
        files.insert(
            id.clone(),
            (
                file["size"].as_u64().unwrap(),
                file["fileName"].as_str().unwrap().to_owned(),
            ),
        );
    }
    let _ = state.tell.send(Heard::Offer(offer));
    match state.rules.person.clone() {
        Person::Declines => return wire.answer(403, r#"{"message":"Rejected"}"#),
        Person::HasAll => return wire.answer(204, ""),
        Person::NeverAnswers => {
            state.slot = Some(Slot {
                open: false,
                who: wire.certificate,
                files,
            });
            return;
        }
        Person::AcceptsOnly(names) => files.retain(|_, (_, name)| names.contains(&name.as_str())),
        Person::Accepts => {}
    }
    let tokens: serde_json::Map<_, _> = files
        .keys()
        .map(|id| (id.clone(), json!(format!("token-{id}"))))
        .collect();
    state.slot = Some(Slot {
        open: true,
        who: wire.certificate,
        files,
    });
    drop(state);
    wire.answer(200, &json!({"sessionId": "session", "files": tokens}).to_string());
}

fn upload(mut state: std::sync::MutexGuard<'_, State>, wire: &mut Wire, request: Message) {
    let (Some(session), Some(id), Some(token)) = (
        parameter(&request, "sessionId"),
        parameter(&request, "fileId"),
        parameter(&request, "token"),
    ) else {
        return wire.answer(400, r#"{"message":"Missing parameters"}"#);
    };
    if state.rules.stalls {
        return;
    }
    if state.rules.forgets {
        state.slot = None;
    }
    let fits = session == "session" && token == format!("token-{id}");
    let slot = state
        .slot
        .as_ref()
        .filter(|slot| slot.open && slot.who == wire.certificate && fits);
    let Some((size, name)) = slot.and_then(|slot| slot.files.get(&id)).cloned() else {
        let status = if state.rules.is_118 || state.slot.is_some() {
            403
        } else {
            409
        };
        return wire.answer(status, r#"{"message":"Invalid token"}"#);
    };
    if state.rules.wrong_hashes > 0 {
        state.rules.wrong_hashes -= 1;
        return wire.answer(422, r#"{"message":"Checksum mismatch"}"#);
    }
    if request.body.len() as u64 != size {
        return wire.answer(500, r#"{"message":"size"}"#);
    }
    let _ = state.tell.send(Heard::File(name, request.body));
    let is_118 = state.rules.is_118;
    if let Some(slot) = &mut state.slot {
        slot.files.remove(&id);
        // 1.17 stays taken until somebody taps Done.
        if slot.files.is_empty() && is_118 {
            state.slot = None;
        }
    }
    drop(state);
    wire.answer(200, "");
}
