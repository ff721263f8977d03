//! The sending role: an offer, and what of it is wanted.

mod offering;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use sealway_drop::cancel::{Cancel, Watch};
use sealway_drop::lock;
use sealway_drop_transfer::entry::Entry;
use sealway_drop_transfer::progress::{Progress, UnderWay};
use sealway_drop_transfer::send::Summary;
use sealway_drop_transfer::source::Scan;
use tokio::sync::watch;
use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::calls::{PREPARE_UPLOAD, UPLOAD};
use crate::client::{Client, Outgoing, farewell, refusal, whole};
use crate::error::{Error, blocking};
use crate::find::Found;
use crate::message::{Accepted, File, Files, MAX_FILES, MAX_MESSAGE, MAX_OFFER, Offer};
use crate::node::{Node, Sent};
use crate::query::target;
use crate::stream::PATIENCE;

/// Files that are sent at a time, as the app does.
const AT_ONCE: usize = 2;
/// How often a file is sent that came with another hash.
const TRIES: u32 = 3;
/// How long nothing may move of a file.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a whole file may wait for its answer: it is written to a disk there.
const LANDING: Duration = Duration::from_secs(600);
/// Notes about single files that are kept.
const NOTES: usize = 100;

/// What is sent.
pub enum What {
    /// Files, below the paths that were scanned; hashed before they are offered, if the second value says so.
    Files(Arc<Scan>, bool),
    /// A text message.
    Text(String),
}

/// Asked for a PIN; the argument says whether one was given and was wrong. `None` gives up. It may wait.
pub type AskPin = Box<dyn FnMut(bool) -> Option<Zeroizing<String>> + Send>;

/// Asks a person for a PIN.
pub(crate) async fn ask_for(mut pin: AskPin, was_wrong: bool) -> Result<(AskPin, Zeroizing<String>), Error> {
    let (answer, pin) = blocking(move || (pin(was_wrong), pin)).await?;
    let answer = answer.ok_or(if was_wrong { Error::PinWrong } else { Error::PinWanted })?;
    Ok((pin, answer))
}

/// Becomes true with `cancel`, as long as the second value is kept.
pub(crate) fn stopped_by(cancel: &Cancel) -> (watch::Receiver<bool>, Watch) {
    let (stop, stopped) = watch::channel(cancel.is_set());
    let watch = cancel.on_cancel(move || {
        stop.send_replace(true);
    });
    (stopped, watch)
}

/// Sends to a device.
///
/// # Errors
/// Those of all of it; files that alone could not be sent are in the summary.
pub async fn send(
    node: &Arc<Node>,
    to: &Found,
    what: &What,
    pin: AskPin,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Summary, sealway_drop::Error> {
    let (stopped, _thrown) = stopped_by(cancel);
    let sender = Arc::new(Sender {
        node: node.clone(),
        to: to.clone(),
        progress: progress.clone(),
        stopped,
        cancelled: watch::Sender::new(false),
        session: Mutex::new(None),
        over: AtomicBool::new(false),
        summary: Mutex::default(),
    });
    *lock(&node.sent) = Some(Sent {
        session: None,
        to: to.place.address.ip().to_canonical(),
        certificate: to.place.pin,
        cancelled: sender.cancelled.clone(),
    });
    let result = sender.run(what, pin).await;
    if !sender.over.load(Ordering::Relaxed) {
        // Its receiver would wait, and refuse everybody else, until a person notices.
        let session = lock(&sender.session).clone();
        farewell(&to.place, &node.tls, session.as_deref()).await;
    }
    *lock(&node.sent) = None;
    result?;
    let mut summary = std::mem::take(&mut *lock(&sender.summary));
    summary.placed = progress.snapshot().files;
    Ok(summary)
}

struct Sender {
    node: Arc<Node>,
    to: Found,
    progress: Arc<Progress>,
    stopped: watch::Receiver<bool>,
    /// The receiver cancelled.
    cancelled: watch::Sender<bool>,
    session: Mutex<Option<String>>,
    /// Whether the receiver knows that nothing more comes.
    over: AtomicBool,
    summary: Mutex<Summary>,
}

/// A file on its way.
struct Job {
    entry: Entry,
    id: String,
    token: String,
    tries: u32,
}

impl Sender {
    async fn run(self: &Arc<Self>, what: &What, pin: AskPin) -> Result<(), sealway_drop::Error> {
        let offer = match what {
            What::Text(text) => {
                let file = File {
                    id: "0".into(),
                    file_name: "message.txt".into(),
                    size: text.len() as u64,
                    file_type: "text/plain".into(),
                    preview: Some(text.clone()),
                    ..File::default()
                };
                vec![("0".to_owned(), file, None)]
            }
            What::Files(scan, hash) => self.offer(scan, *hash).await?,
        };
        if offer.is_empty() {
            return Err(Error::Usage("there is no file that could be sent this way".into()).into());
        }
        if offer.len() > MAX_FILES {
            return Err(Error::Usage(format!("more than {MAX_FILES} files; send an archive of them")).into());
        }
        let bytes = offer.iter().map(|(_, file, _)| file.size).sum();
        let count = offer.len() as u64;
        let (mut files, mut entries) = (Vec::with_capacity(offer.len()), HashMap::new());
        for (id, file, entry) in offer {
            entries.extend(entry.map(|entry| (id.clone(), entry)));
            files.push((id, file));
        }
        let offer = Offer {
            info: self.node.info().clone(),
            session_id: None,
            files: Files(files),
        };
        let json = serde_json::to_vec(&offer).map_err(|error| Error::Usage(error.to_string()))?;
        if json.len() > MAX_OFFER {
            return Err(Error::Usage("too many files at once; send an archive of them".into()).into());
        }
        drop(offer);
        let (client, accepted) = self.ask(json, pin).await?;
        self.progress.begin(bytes, count);
        let Some(accepted) = accepted else {
            if let What::Text(text) = what {
                self.progress.moved(text.len() as u64);
                self.progress.file_done();
            }
            // Files that are all there.
            for entry in entries.into_values() {
                self.progress.same(entry.size());
            }
            return Ok(());
        };
        if let What::Text(text) = what {
            return Ok(self.text(client, accepted, text).await?);
        }
        let What::Files(scan, _) = what else { return Ok(()) };
        let mut jobs = VecDeque::new();
        for (id, token) in accepted.files.0 {
            let Some(entry) = entries.remove(&id) else {
                let why = "it wants a file that was not offered".into();
                return Err(Error::Malformed { what: "an answer", why }.into());
            };
            jobs.push_back(Job {
                entry,
                id,
                token,
                tries: 0,
            });
        }
        // The order of the answer is none.
        jobs.make_contiguous().sort_by(|a, b| a.entry.path.cmp(&b.entry.path));
        for entry in entries.into_values() {
            self.progress.same(entry.size());
        }
        self.upload_all(client, scan, jobs).await
    }

    /// Puts the offer to the other end, with a PIN if it wants one, and waits for its person. Nothing is wanted without a value.
    async fn ask(&self, json: Vec<u8>, mut pin: AskPin) -> Result<(Client, Option<Accepted>), sealway_drop::Error> {
        let mut given: Option<Zeroizing<String>> = None;
        self.progress.offered();
        loop {
            let mut client = Client::connect(&self.to.place, &self.node.tls, &self.to.name(), PATIENCE).await?;
            let path = target(PREPARE_UPLOAD, &[("pin", given.as_ref().map(|pin| pin.as_str()))]);
            let answer = self.unless_stopped(client.post(&path, json.clone())).await??;
            match answer.status() {
                StatusCode::OK => {
                    let body = whole(answer, MAX_OFFER).await?;
                    let accepted = Accepted::read(&body).map_err(Error::malformed("an answer"))?;
                    *lock(&self.session) = Some(accepted.session_id.clone());
                    if let Some(sent) = lock(&self.node.sent).as_mut() {
                        sent.session = Some(accepted.session_id.clone());
                    }
                    let wanted = !accepted.files.0.is_empty();
                    return Ok((client, wanted.then_some(accepted)));
                }
                StatusCode::NO_CONTENT => {
                    self.over.store(true, Ordering::Relaxed);
                    return Ok((client, None));
                }
                StatusCode::UNAUTHORIZED => {
                    let asked = ask_for(pin, given.is_some()).await;
                    self.over.store(asked.is_err(), Ordering::Relaxed);
                    let (again, answer) = asked?;
                    (pin, given) = (again, Some(answer));
                }
                _ => {
                    // Nothing of ours is there to be cancelled.
                    self.over.store(true, Ordering::Relaxed);
                    return Err(refusal("the offer", answer).await.into());
                }
            }
        }
    }

    async fn unless_stopped<T>(&self, what: impl Future<Output = T>) -> Result<T, sealway_drop::Error> {
        let (mut stopped, mut cancelled) = (self.stopped.clone(), self.cancelled.subscribe());
        tokio::select! {
            result = what => Ok(result),
            _ = stopped.wait_for(|stopped| *stopped) => Err(sealway_drop::Error::Cancelled),
            _ = cancelled.wait_for(|cancelled| *cancelled) => {
                self.over.store(true, Ordering::Relaxed);
                Err(Error::CancelledThere.into())
            }
        }
    }

    /// A message whose bytes are wanted as well.
    async fn text(&self, mut client: Client, accepted: Accepted, text: &str) -> Result<(), Error> {
        for (id, token) in &accepted.files.0 {
            let path = upload(&accepted.session_id, id, token);
            let body = Outgoing::of(text.as_bytes().to_vec());
            let answer = client.ask(Method::POST, &path, "text/plain", body).await?;
            if !answer.status().is_success() {
                return Err(refusal("the message", answer).await);
            }
        }
        self.progress.moved(text.len() as u64);
        self.progress.file_done();
        self.over.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn upload_all(
        self: &Arc<Self>,
        client: Client,
        scan: &Arc<Scan>,
        jobs: VecDeque<Job>,
    ) -> Result<(), sealway_drop::Error> {
        let workers = AT_ONCE.min(jobs.len());
        let jobs = Arc::new(Mutex::new(jobs));
        let mut clients = vec![Some(client)];
        clients.resize_with(workers, || None);
        let mut working = JoinSet::new();
        for client in clients {
            let (sender, scan, jobs) = (self.clone(), scan.clone(), jobs.clone());
            working.spawn(async move { sender.work(client, &scan, &jobs).await });
        }
        let all = async {
            while let Some(done) = working.join_next().await {
                done.map_err(|error| sealway_drop::Error::from(Error::Usage(error.to_string())))??;
            }
            Ok::<_, sealway_drop::Error>(())
        };
        self.unless_stopped(all).await??;
        // What failed counts as waited for at the other end, unless it is told.
        let complete = self.progress.snapshot().failed == 0 && lock(&self.summary).failed == 0;
        self.over.store(complete, Ordering::Relaxed);
        Ok(())
    }

    /// Sends one file after another over one connection.
    async fn work(
        &self,
        mut client: Option<Client>,
        scan: &Arc<Scan>,
        jobs: &Mutex<VecDeque<Job>>,
    ) -> Result<(), sealway_drop::Error> {
        loop {
            let Some(mut job) = lock(jobs).pop_front() else {
                return Ok(());
            };
            job.tries += 1;
            let (opening, entry) = (scan.clone(), job.entry.clone());
            let file = match blocking(move || opening.open(&entry)).await? {
                Ok(file) if file.matches(&job.entry) => file,
                Ok(_) => {
                    self.failed(&job.entry, "it changed since it was offered");
                    continue;
                }
                Err(error) => {
                    self.failed(&job.entry, &error.to_string());
                    continue;
                }
            };
            let mut connection = match client.take().filter(|client| !client.is_closed()) {
                Some(client) => client,
                None => Client::connect(&self.to.place, &self.node.tls, &self.to.name(), PATIENCE).await?,
            };
            let session = lock(&self.session).clone().unwrap_or_default();
            let path = upload(&session, &job.id, &job.token);
            let (size, moved) = (file.size(), Arc::new(AtomicU64::new(0)));
            let under_way = UnderWay::new(&job.entry.path, size);
            let body = Outgoing::file(file, self.progress.clone(), under_way, moved.clone());
            let asking = connection.ask(Method::POST, &path, "application/octet-stream", body);
            let answer = match watched(asking, size, &moved).await {
                Ok(answer) => answer,
                Err(error @ (Error::OtherCertificate { .. } | Error::WantsCertificate)) => return Err(error.into()),
                Err(error) => {
                    self.failed(&job.entry, &error.to_string());
                    continue;
                }
            };
            match answer.status() {
                status if status.is_success() => {
                    self.progress.file_done();
                    whole(answer, MAX_MESSAGE).await?;
                    client = Some(connection);
                }
                StatusCode::UNPROCESSABLE_ENTITY if job.tries < TRIES => {
                    whole(answer, MAX_MESSAGE).await?;
                    client = Some(connection);
                    lock(jobs).push_front(job);
                }
                StatusCode::UNPROCESSABLE_ENTITY => self.failed(&job.entry, "it came with another hash, three times"),
                // There is no such session any more.
                StatusCode::CONFLICT => {
                    self.over.store(true, Ordering::Relaxed);
                    return Err(Error::CancelledThere.into());
                }
                _ => self.failed(&job.entry, &refusal("the file", answer).await.to_string()),
            }
        }
    }

    fn failed(&self, entry: &Entry, why: &str) {
        self.progress.file_failed();
        self.left_out(format!("{}: {why}", entry.path), 1);
    }

    fn left_out(&self, note: String, count: u64) {
        let mut summary = lock(&self.summary);
        summary.failed += count;
        if summary.notes.len() < NOTES {
            summary.notes.push(note);
        }
    }
}

fn upload(session: &str, id: &str, token: &str) -> String {
    target(
        UPLOAD,
        &[
            ("sessionId", Some(session)),
            ("fileId", Some(id)),
            ("token", Some(token)),
        ],
    )
}

/// Waits for an answer as long as something moves.
async fn watched(
    asking: impl Future<Output = Result<Response<Incoming>, Error>>,
    size: u64,
    moved: &AtomicU64,
) -> Result<Response<Incoming>, Error> {
    tokio::pin!(asking);
    let mut before = 0;
    loop {
        let now = moved.load(Ordering::Relaxed);
        let patience = if now == size { LANDING } else { SILENCE };
        if let Ok(answer) = tokio::time::timeout(patience, &mut asking).await {
            return answer;
        }
        if moved.load(Ordering::Relaxed) == before.max(now) {
            return Err(Error::Silent);
        }
        before = now;
    }
}
