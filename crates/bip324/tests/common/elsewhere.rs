//! An executor of another library on another thread, with a table of keys of its own, that works, fails or lies as it is told.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Tag};
use sealway_aead::batch::{Job, Slot, Status};
use sealway_bip324::batch::{Executor, ExecutorFailure, Stopped};

/// What it does in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    Works,
    /// Fails before it begins.
    Refuses,
    /// Does so many jobs and says so.
    StopsAfter(usize),
    /// Says that all is well, and leaves the status of a job that it has done.
    LeavesStatus(usize),
    /// Says that all is well, and has written nothing for a job.
    LeavesOutput(usize),
    /// Stops after so many jobs and has done one more, without its status.
    DoesMore(usize),
    /// Stops after so many jobs and sets the status of the one after.
    SaysMore(usize),
    /// Stops after so many jobs, of which it has not done the last.
    DoesLess(usize),
    /// Stops after more jobs than there are.
    Overcounts,
    /// Says that a job that seals is not authentic.
    Confuses(usize),
    /// Panics after it has written so many outputs.
    Panics(usize),
    /// Gives other bytes, all with a status of done.
    Corrupts,
}

/// What it was asked for.
#[derive(Debug, Default)]
pub struct Log {
    /// Jobs and bytes of each start.
    pub starts: Vec<(usize, usize)>,
    pub finishes: usize,
    /// Slots that hold a key.
    pub held: Vec<u32>,
    /// Bytes of the arena beyond the last job.
    pub beyond: usize,
    /// Highest slot that was set or cleared.
    pub highest: u32,
}

struct Task {
    slot: u32,
    nonce: [u8; 12],
    opens: bool,
    text: Vec<u8>,
    tag: [u8; 16],
}

enum Message {
    Set(u32, [u8; 32]),
    Clear(u32),
    Run(Vec<Task>),
}

type Results = Vec<(Status, Vec<u8>, [u8; 16])>;

pub struct Elsewhere {
    to: Option<Sender<Message>>,
    from: Receiver<Results>,
    worker: Option<JoinHandle<()>>,
    log: Arc<Mutex<Log>>,
    /// In which run it does what; in all others it works.
    pub act: (usize, Act),
    pub preferred: usize,
    pub longest: usize,
    pub capacity: usize,
    pub slots: usize,
}

impl Elsewhere {
    pub fn new(act: (usize, Act)) -> (Self, Arc<Mutex<Log>>) {
        let (to, messages) = channel();
        let (results, from) = channel();
        let log = Arc::new(Mutex::new(Log::default()));
        let elsewhere = Elsewhere {
            to: Some(to),
            from,
            worker: Some(std::thread::spawn(move || work(&messages, &results))),
            log: log.clone(),
            act,
            preferred: 300,
            longest: usize::MAX,
            capacity: usize::MAX,
            slots: usize::MAX,
        };
        (elsewhere, log)
    }

    fn tell(&self, message: Message) {
        self.to.as_ref().unwrap().send(message).unwrap();
    }

    fn act(&self) -> Act {
        let run = self.log.lock().unwrap().starts.len() - 1;
        if run == self.act.0 { self.act.1 } else { Act::Works }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.to = None;
        self.worker.take().unwrap().join().unwrap();
    }
}

fn work(messages: &Receiver<Message>, results: &Sender<Results>) {
    let mut keys = HashMap::new();
    for message in messages {
        match message {
            Message::Set(slot, key) => drop(keys.insert(slot, key)),
            Message::Clear(slot) => drop(keys.remove(&slot)),
            Message::Run(tasks) => {
                let done = tasks.into_iter().map(|task| run(&keys, task)).collect();
                results.send(done).unwrap();
            }
        }
    }
}

fn run(keys: &HashMap<u32, [u8; 32]>, task: Task) -> (Status, Vec<u8>, [u8; 16]) {
    let Task { mut text, mut tag, .. } = task;
    let Some(key) = keys.get(&task.slot) else {
        return (Status::Failed, text, tag);
    };
    let cipher = ChaCha20Poly1305::new(key.into());
    let nonce = (&task.nonce).into();
    let mut status = Status::Done;
    if task.opens {
        let sent = Tag::from(tag);
        if cipher
            .decrypt_inout_detached(nonce, &[], text.as_mut_slice().into(), &sent)
            .is_err()
        {
            status = Status::Unauthentic;
            text.fill(0);
        }
    } else {
        let made = cipher
            .encrypt_inout_detached(nonce, &[], text.as_mut_slice().into())
            .unwrap();
        tag.copy_from_slice(&made);
    }
    (status, text, tag)
}

impl Executor for Elsewhere {
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]) {
        let mut log = self.log.lock().unwrap();
        log.highest = log.highest.max(slot.0);
        log.held.retain(|held| *held != slot.0);
        log.held.push(slot.0);
        self.tell(Message::Set(slot.0, *key));
    }

    fn clear_key(&mut self, slot: Slot) {
        let mut log = self.log.lock().unwrap();
        log.highest = log.highest.max(slot.0);
        log.held.retain(|held| *held != slot.0);
        self.tell(Message::Clear(slot.0));
    }

    fn preferred_jobs(&self) -> usize {
        self.preferred
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), ExecutorFailure> {
        let task = |job: &Job| {
            let (start, end) = (job.input_offset(), job.input_offset() + job.message_len());
            assert_eq!(start, job.output_offset());
            assert!(job.message_len() <= self.longest);
            Task {
                slot: job.slot().0,
                nonce: job.nonce().try_into().unwrap(),
                opens: job.opens(),
                text: arena[start..end].to_vec(),
                tag: arena[end..end + 16].try_into().unwrap(),
            }
        };
        let tasks: Vec<Task> = jobs.iter().map(task).collect();
        let last = jobs.last().unwrap();
        let mut log = self.log.lock().unwrap();
        log.starts.push((jobs.len(), jobs.iter().map(Job::message_len).sum()));
        log.beyond += arena.len() - (last.input_offset() + last.message_len() + 16);
        drop(log);
        if self.act() == Act::Refuses {
            return Err(ExecutorFailure::new("told to refuse"));
        }
        self.tell(Message::Run(tasks));
        Ok(())
    }

    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> Result<(), Stopped> {
        self.log.lock().unwrap().finishes += 1;
        let mut results = self.from.recv().unwrap();
        assert!(results.len() == jobs.len() && statuses.iter().all(|status| *status == Status::Failed));
        let act = self.act();
        let all = jobs.len();
        // How many outputs are written, how many statuses set, and what is said.
        let (outputs, set, said) = match act {
            Act::StopsAfter(n) => (n, n, Some(n)),
            Act::DoesMore(n) => (n + 1, n, Some(n)),
            Act::SaysMore(n) => (n, n + 1, Some(n)),
            Act::DoesLess(n) => (n - 1, n, Some(n)),
            Act::Overcounts => (all, all, Some(all + 1)),
            _ => (all, all, None),
        };
        for (n, (job, (_, text, tag))) in jobs.iter().zip(&mut results).enumerate().take(outputs) {
            let end = job.output_offset() + job.message_len();
            assert!(act != Act::Panics(n), "told to panic");
            if act == Act::LeavesOutput(n) {
                continue;
            }
            if act == Act::Corrupts {
                text[0] ^= 1;
            }
            arena[job.output_offset()..end].copy_from_slice(text);
            if !job.opens() {
                arena[end..end + 16].copy_from_slice(tag);
            }
        }
        for (n, (status, (is, ..))) in statuses.iter_mut().zip(&results).enumerate().take(set) {
            *status = match act {
                Act::LeavesStatus(left) if left == n => continue,
                Act::Confuses(wrong) if wrong == n => Status::Unauthentic,
                _ => *is,
            };
        }
        match said {
            Some(done) => Err(Stopped {
                done,
                failure: ExecutorFailure::new("told to stop"),
            }),
            None => Ok(()),
        }
    }
}
