//! The cells that run inside this process.

use std::marker::PhantomData;
use std::rc::Rc;

use sealway_aead::Suite;

use super::script::Script;
use crate::result::Case;
use crate::run::{Cell, CellError};
use crate::workload::batch::Op;
use crate::workload::bytes::nonce;
use crate::workload::chunk::{Chunk, chunked};
use crate::workload::engine::{Engine, TagBytes};

/// Keys set up in one chunk.
const SETUP_KEYS: u64 = 64;

fn refused(name: &str, suite: Suite) -> CellError {
    CellError::failed(format_args!("{name} refused a call of {suite}"))
}

/// Many messages under one key.
struct Messages<E: Engine> {
    script: Rc<Script>,
    sealing: E::Sealing,
    opening: E::Opening,
    buffer: Vec<u8>,
    tags: Vec<TagBytes>,
}

impl<E: Engine> Messages<E> {
    fn new(script: Rc<Script>) -> Result<Self, CellError> {
        let suite = script.suite;
        let sealing = E::sealing(suite, &script.key).ok_or_else(|| refused(E::NAME, suite))?;
        let opening = E::opening(suite, &script.key).ok_or_else(|| refused(E::NAME, suite))?;
        Ok(Messages {
            sealing,
            opening,
            buffer: script.start.clone(),
            tags: script.tags.clone(),
            script,
        })
    }

    /// An engine that opens anything would be fast: one flipped bit in tag or text must be refused.
    fn refuses_forgeries(&self) -> Result<(), CellError> {
        let script = &self.script;
        let mut nonce_bytes = script.nonce_base;
        let nonce = nonce(&mut nonce_bytes, script.suite.nonce_len(), 0);
        let mut sealed = script.start.clone();
        let tag =
            E::seal(&self.sealing, nonce, &script.aad, &mut sealed).ok_or_else(|| refused(E::NAME, script.suite))?;
        let accepts = |text: &[u8], tag: &TagBytes| E::open(&self.opening, nonce, &script.aad, &mut text.to_vec(), tag);
        let mut bad_tag = tag;
        bad_tag[15] ^= 0x80;
        let mut bad_text = sealed.clone();
        if let Some(byte) = bad_text.last_mut() {
            *byte ^= 1;
        }
        if !accepts(&sealed, &tag) {
            return Err(CellError::wrong(format_args!(
                "{} does not open what it sealed with {}",
                E::NAME,
                script.suite
            )));
        }
        if accepts(&sealed, &bad_tag) || (bad_text != sealed && accepts(&bad_text, &tag)) {
            return Err(CellError::wrong(format_args!(
                "{} accepts a forged message of {}",
                E::NAME,
                script.suite
            )));
        }
        Ok(())
    }
}

impl<E: Engine> Chunk for Messages<E> {
    fn reset(&mut self) {
        self.buffer.copy_from_slice(&self.script.start);
        if self.script.op == Op::Seal {
            self.tags.fill(TagBytes::default());
        }
    }

    fn work(&mut self) -> Result<(), CellError> {
        let script = &*self.script;
        let nonce_len = script.suite.nonce_len();
        let mut nonce_bytes = script.nonce_base;
        match script.op {
            Op::Open => {
                for (i, tag) in self.tags.iter().enumerate() {
                    let nonce = nonce(&mut nonce_bytes, nonce_len, i);
                    if !E::open(&self.opening, nonce, &script.aad, &mut self.buffer, tag) {
                        let what = format_args!("{} does not open message {i} of {}", E::NAME, script.suite);
                        return Err(CellError::wrong(what));
                    }
                }
            }
            _ => {
                for (i, tag) in self.tags.iter_mut().enumerate() {
                    let nonce = nonce(&mut nonce_bytes, nonce_len, i);
                    match E::seal(&self.sealing, nonce, &script.aad, &mut self.buffer) {
                        Some(made) => *tag = made,
                        None => return Err(refused(E::NAME, script.suite)),
                    }
                }
            }
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        self.script.verify(&self.buffer, &self.tags)
    }

    fn examine(&mut self) -> Result<(), CellError> {
        self.refuses_forgeries()
    }

    fn counted(&self) -> (u64, u64) {
        let messages = self.tags.len() as u64;
        (messages, messages * self.buffer.len() as u64)
    }
}

/// A fresh key for every message: set up, seal one message, drop.
struct FreshKeys<E: Engine> {
    keys: Rc<Vec<Script>>,
    /// One buffer a message, side by side.
    buffers: Vec<u8>,
    tags: Vec<TagBytes>,
    engine: PhantomData<E>,
}

impl<E: Engine> FreshKeys<E> {
    fn bytes(&self) -> usize {
        self.buffers.len() / self.keys.len().max(1)
    }
}

impl<E: Engine> Chunk for FreshKeys<E> {
    fn reset(&mut self) {
        let bytes = self.bytes();
        for (script, buffer) in self.keys.iter().zip(self.buffers.chunks_exact_mut(bytes)) {
            buffer.copy_from_slice(&script.start);
        }
        self.tags.fill(TagBytes::default());
    }

    fn work(&mut self) -> Result<(), CellError> {
        let bytes = self.bytes();
        for ((script, buffer), made) in self
            .keys
            .iter()
            .zip(self.buffers.chunks_exact_mut(bytes))
            .zip(&mut self.tags)
        {
            let mut nonce_bytes = script.nonce_base;
            let nonce = nonce(&mut nonce_bytes, script.suite.nonce_len(), 0);
            let tag = E::sealing(script.suite, &script.key).and_then(|key| E::seal(&key, nonce, &script.aad, buffer));
            *made = tag.ok_or_else(|| refused(E::NAME, script.suite))?;
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        let buffers = self.buffers.chunks_exact(self.bytes());
        self.keys
            .iter()
            .zip(buffers)
            .zip(&self.tags)
            .try_for_each(|((script, buffer), tag)| script.verify(buffer, std::slice::from_ref(tag)))
    }

    fn counted(&self) -> (u64, u64) {
        (self.keys.len() as u64, self.buffers.len() as u64)
    }
}

/// Key set-up alone. A sealed message shows that a key is right, but takes many times as long as setting it up: after
/// each chunk one key is checked, the next in turn, and all of them before the first window.
struct Setup<E: Engine> {
    keys: Rc<Vec<Script>>,
    made: Vec<E::Sealing>,
    next: usize,
}

impl<E: Engine> Setup<E> {
    fn check(&self, i: usize) -> Result<(), CellError> {
        let (Some(script), Some(key)) = (self.keys.get(i), self.made.get(i)) else {
            return Err(CellError::failed(format_args!("key {i} was not set up")));
        };
        let mut buffer = script.start.clone();
        let mut nonce_bytes = script.nonce_base;
        let nonce = nonce(&mut nonce_bytes, script.suite.nonce_len(), 0);
        let tag = E::seal(key, nonce, &script.aad, &mut buffer).ok_or_else(|| refused(E::NAME, script.suite))?;
        script.verify(&buffer, &[tag])
    }
}

impl<E: Engine> Chunk for Setup<E> {
    fn reset(&mut self) {
        self.made.clear();
    }

    fn work(&mut self) -> Result<(), CellError> {
        for script in self.keys.iter() {
            self.made
                .push(E::sealing(script.suite, &script.key).ok_or_else(|| refused(E::NAME, script.suite))?);
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        self.next = (self.next + 1) % self.keys.len().max(1);
        self.check(self.next)
    }

    fn examine(&mut self) -> Result<(), CellError> {
        (0..self.keys.len()).try_for_each(|i| self.check(i))
    }

    fn counted(&self) -> (u64, u64) {
        (self.keys.len() as u64, 0)
    }
}

/// Scripts of one message each, all under different keys.
pub(super) fn one_message_scripts(suite: Suite, bytes: usize, aad: usize) -> Result<Vec<Script>, CellError> {
    (1..=SETUP_KEYS)
        .map(|i| Script::new(suite, Op::Seal, bytes, aad, 1, i))
        .collect()
}

/// A cell that seals or opens messages.
pub(super) fn messages<E: Engine>(case: Case, script: Rc<Script>) -> Cell {
    chunked(case, E::NAME, move || Messages::<E>::new(Rc::clone(&script)))
}

/// A cell that seals each message under a fresh key.
pub(super) fn fresh_keys<E: Engine>(case: Case, keys: Rc<Vec<Script>>) -> Cell {
    chunked(case, E::NAME, move || {
        let buffers = keys.iter().flat_map(|script| script.start.iter().copied()).collect();
        let tags = vec![TagBytes::default(); keys.len()];
        Ok(FreshKeys::<E> {
            keys: Rc::clone(&keys),
            buffers,
            tags,
            engine: PhantomData,
        })
    })
}

/// A cell that sets up keys.
pub(super) fn setup<E: Engine>(case: Case, keys: Rc<Vec<Script>>) -> Cell {
    chunked(case, E::NAME, move || {
        Ok(Setup::<E> {
            made: Vec::with_capacity(keys.len()),
            keys: Rc::clone(&keys),
            next: 0,
        })
    })
}
