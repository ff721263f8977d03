//! Files are taken.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming as Coming};
use hyper::header::{ACCEPT, CONTENT_RANGE, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use sealway_drop::names::{RelPath, join};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::{Answer, Client, No, Web, broken, of_kind, page, text};
use crate::form::{Event, Form, Malformed};
use crate::page::taken;
use crate::path::Target;
use crate::range;
use crate::telling::Upload;
use crate::upload::{Announced, Begun, Inbox, Incoming, Refused, Spool, path_in};

/// How long a client may send nothing.
const SILENCE: Duration = Duration::from_secs(60);
/// Pieces that wait to be written.
const WAITING: usize = 16;

impl From<&Refused> for No {
    fn from(refused: &Refused) -> No {
        let (status, title) = match refused {
            Refused::Rule(_) => (StatusCode::FORBIDDEN, "Not taken"),
            Refused::Large(_) => (StatusCode::PAYLOAD_TOO_LARGE, "Too large"),
            Refused::NoRoom => (StatusCode::INSUFFICIENT_STORAGE, "No room"),
            Refused::Busy | Refused::Offset(_) => (StatusCode::CONFLICT, "Not now"),
            Refused::Broken(_) => (StatusCode::BAD_REQUEST, "Broken off"),
            Refused::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Failed"),
        };
        No::new(status, title, refused.told())
    }
}

/// What came of a file.
enum Came {
    There,
    /// All of it, under this path.
    Placed(RelPath, u64),
    /// Up to this byte.
    Part(u64),
}

/// One file, or a part of one (`Content-Range`), or the question where to go on.
pub(super) async fn put(
    web: &Arc<Web>,
    inbox: &Arc<Inbox>,
    client: &Client,
    request: Request<Coming>,
    target: Target,
) -> Result<Answer, No> {
    let headers = request.headers();
    let json = headers
        .get(ACCEPT)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let wrong = |title, text| No::new(StatusCode::BAD_REQUEST, title, text);
    let Some(path) = target.path.filter(|_| !target.folder) else {
        let text = "Name the file: PUT …/NAME, or curl -T FILE …/";
        return Err(wrong("No name", text));
    };
    let sent = match headers.get(CONTENT_RANGE) {
        None => None,
        Some(header) => {
            let text = "Content-Range is not FIRST-LAST/SIZE in bytes.";
            Some(range::sent(header.as_bytes()).ok_or_else(|| wrong("Wrong range", text))?)
        }
    };
    let length = request.body().size_hint().exact();
    let body = request.into_body();
    let announce = |size| Announced {
        path: path.clone(),
        size,
        modified: target.query.modified,
    };
    let came = match (sent, length) {
        (Some(range::Sent { range: None, size }), _) => match begin(inbox, announce(size)).await {
            Ok(Begun::There) => Ok(Came::There),
            Ok(Begun::Open(incoming)) => Ok(Came::Part(offset(incoming).await)),
            Err(refused) => Err(refused),
        },
        (
            Some(range::Sent {
                range: Some(part),
                size,
            }),
            _,
        ) => match length.is_none_or(|length| length == part.end - part.start) {
            true => receive(inbox, announce(size), part, body).await,
            false => Err(Refused::Broken(
                "Content-Length is not that of Content-Range".to_owned(),
            )),
        },
        (None, Some(size)) => receive(inbox, announce(size), 0..size, body).await,
        (None, None) => spool(inbox, path.clone(), body).await,
    };
    match came {
        Ok(came) => Ok(tell(web, client, &path, came, json)),
        Err(refused) => {
            // A client that comes back too early, or elsewhere, tries again by itself.
            if !matches!(refused, Refused::Busy | Refused::Offset(_)) {
                web.telling
                    .not_received(&join(path.key()), client.address, &refused.why());
            }
            Err(No::from(&refused))
        }
    }
}

/// Tells who watches, and the client, what came of a file that was sent to `path`.
fn tell(web: &Web, client: &Client, path: &RelPath, came: Came, json: bool) -> Answer {
    let name = |path: &RelPath| String::from_utf8_lossy(&join(path.key())).into_owned();
    let (status, value, words) = match came {
        Came::Placed(path, bytes) => {
            let (path, told) = (join(path.key()), name(&path));
            web.telling.received(&Upload {
                path,
                client: client.address,
                bytes,
            });
            (StatusCode::CREATED, json!({"done": true, "name": told}), told)
        }
        Came::There => {
            let note = "the same file is there already";
            let value = json!({"done": true, "name": name(path), "note": note});
            (StatusCode::OK, value, note.to_owned())
        }
        Came::Part(offset) => (StatusCode::OK, json!({"offset": offset}), offset.to_string()),
    };
    match json {
        true => of_kind("application/json", status, value.to_string()),
        false => text(status, format!("{words}\n")),
    }
}

async fn begin(inbox: &Arc<Inbox>, announced: Announced) -> Result<Begun, Refused> {
    let inbox = Arc::clone(inbox);
    joined(spawn_blocking(move || inbox.begin(&announced))).await
}

async fn offset(incoming: Incoming) -> u64 {
    // To close it writes to the disk.
    spawn_blocking(move || incoming.offset()).await.unwrap_or(0)
}

async fn joined<T>(task: JoinHandle<Result<T, Refused>>) -> Result<T, Refused> {
    task.await
        .unwrap_or_else(|_| Err(Refused::Failed("a thread ended".to_owned())))
}

async fn receive(
    inbox: &Arc<Inbox>,
    announced: Announced,
    part: std::ops::Range<u64>,
    body: Coming,
) -> Result<Came, Refused> {
    let size = announced.size;
    let incoming = match begin(inbox, announced).await? {
        Begun::There => return Ok(Came::There),
        Begun::Open(incoming) => incoming,
    };
    let (to, mut pieces) = mpsc::channel::<Option<Bytes>>(WAITING);
    let writing = spawn_blocking(move || {
        let mut at = part.start;
        incoming.start(at)?;
        while let Some(Some(bytes)) = pieces.blocking_recv() {
            incoming.write(at, &bytes)?;
            at += bytes.len() as u64;
        }
        match at {
            _ if at != part.end => Err(Refused::Broken(format!("it broke off at byte {at}; what came is kept"))),
            _ if at < size => Ok(Came::Part(at)),
            _ => Ok(Came::Placed(incoming.finish()?, size)),
        }
    });
    hand_over(body, to).await;
    joined(writing).await
}

/// Hands what comes to a thread that writes it, and an end behind all of it, until either ends, or nothing comes for too long.
async fn hand_over(mut body: Coming, to: mpsc::Sender<Option<Bytes>>) {
    loop {
        let frame = match timeout(SILENCE, poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => {
                let _ = to.send(None).await;
                return;
            }
            _ => return,
        };
        if let Ok(bytes) = frame.into_data()
            && to.send(Some(bytes)).await.is_err()
        {
            return;
        }
    }
}

/// A file whose size is not said before.
async fn spool(inbox: &Arc<Inbox>, path: RelPath, body: Coming) -> Result<Came, Refused> {
    let (to, mut pieces) = mpsc::channel::<Option<Bytes>>(WAITING);
    let inbox = Arc::clone(inbox);
    let writing = spawn_blocking(move || {
        let mut spool = inbox.spool()?;
        loop {
            match pieces.blocking_recv() {
                Some(Some(bytes)) => spool.write(&bytes)?,
                Some(None) => break,
                None => {
                    return Err(Refused::Broken(
                        "it broke off; send its length to go on next time".to_owned(),
                    ));
                }
            }
        }
        let (path, size) = spool.place(path)?;
        Ok(Came::Placed(path, size))
    });
    hand_over(body, to).await;
    joined(writing).await
}

/// What the reading of a form stops for.
enum Stop {
    Form(Malformed),
    Refused(Refused),
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Form(malformed)
    }
}

/// The files of a form, from a browser without scripts.
pub(super) async fn form(
    web: &Arc<Web>,
    inbox: &Arc<Inbox>,
    client: &Client,
    request: Request<Coming>,
    target: Target,
) -> Result<Answer, No> {
    let form = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| Form::of(kind.as_bytes()));
    let wrong = || {
        No::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "No form",
            "Send a form with files (multipart/form-data), or PUT a file.",
        )
    };
    let form = form.ok_or_else(wrong)?;
    if !target.folder {
        return Err(No::nothing());
    }
    let (to, pieces) = mpsc::channel(WAITING);
    let reading = spawn_blocking({
        let (inbox, folder) = (Arc::clone(inbox), target.path);
        move || read_form(&inbox, folder.as_ref(), form, pieces)
    });
    hand_over(request.into_body(), to).await;
    let files = reading.await.map_err(|_| broken())?;
    let told = files.into_iter().map(|(name, result)| {
        let result = match result {
            Ok((path, bytes)) => {
                let path = join(path.key());
                let told = format!("done, {} bytes, as {}", bytes, String::from_utf8_lossy(&path));
                web.telling.received(&Upload {
                    path,
                    client: client.address,
                    bytes,
                });
                Ok(told)
            }
            Err(refused) => {
                web.telling.not_received(&name, client.address, &refused.why());
                Err(refused.told())
            }
        };
        (name, result)
    });
    let told: Vec<_> = told.collect();
    let status = match told.iter().all(|(_, result)| result.is_ok()) {
        true => StatusCode::OK,
        false => StatusCode::BAD_REQUEST,
    };
    Ok(page(status, taken(&told)))
}

/// Of each file its name in the form, and what became of it.
type Files = Vec<(Vec<u8>, Result<(RelPath, u64), Refused>)>;

fn read_form(
    inbox: &Inbox,
    folder: Option<&RelPath>,
    mut form: Form,
    mut pieces: mpsc::Receiver<Option<Bytes>>,
) -> Files {
    let mut files: Files = Vec::new();
    let mut current: Option<(Vec<u8>, Result<(RelPath, Spool<'_>), Refused>)> = None;
    let mut read = |bytes: &[u8], form: &mut Form, files: &mut Files| {
        form.read(bytes, |event| {
            match event {
                // A file that was not chosen has no name.
                Event::Part(name) => {
                    current = name.filter(|name| !name.is_empty()).map(|name| {
                        let begun = path_in(folder, &name).and_then(|path| Ok((path, inbox.spool()?)));
                        (name, begun)
                    });
                }
                Event::Data(data) => {
                    if let Some((_, file)) = &mut current
                        && let Ok((_, spool)) = file
                        && let Err(refused) = spool.write(data)
                    {
                        // Without room the rest is not worth reading.
                        if matches!(refused, Refused::NoRoom | Refused::Failed(_)) {
                            return Err(Stop::Refused(refused));
                        }
                        *file = Err(refused);
                    }
                }
                Event::End => {
                    if let Some((name, file)) = current.take() {
                        files.push((name, file.and_then(|(path, spool)| spool.place(path))));
                    }
                }
            }
            Ok(())
        })
    };
    let broken = loop {
        match pieces.blocking_recv() {
            Some(Some(bytes)) => {
                if let Err(stop) = read(&bytes, &mut form, &mut files) {
                    break Some(stop);
                }
            }
            Some(None) => break form.finish().err().map(Stop::Form),
            None => break Some(Stop::Form(Malformed("it breaks off"))),
        }
    };
    if let Some(stop) = broken {
        let name = current.take().map_or_else(|| b"the form".to_vec(), |(name, _)| name);
        let refused = match stop {
            Stop::Form(malformed) => Refused::Broken(malformed.to_string()),
            Stop::Refused(refused) => refused,
        };
        files.push((name, Err(refused)));
    }
    files
}
