//! What a window works on: a chain of messages with every answer known beforehand.
//!
//! A chunk is a fixed number of messages under one key with counter nonces, in place in one buffer: each message is what
//! the one before has left. So the last buffer depends on every step, and the tags cover every buffer in between. The
//! oracle computes buffer and tags once; after each chunk, with the clock stopped, they are compared in full, and the
//! buffer is set back to the start. Nonces repeat from chunk to chunk, which a benchmark may do and nobody else.

use sealway_aead::Suite;

use crate::run::CellError;
use crate::workload::batch::Op;
use crate::workload::bytes::{noise, nonce};
use crate::workload::engine::{Engine, RustCrypto, TagBytes};

/// Bytes that one chunk should process, so that the tags of a chunk stay in the first-level cache.
const CHUNK_BYTES: usize = 256 * 1024;

/// How many messages a chunk of this message size has.
pub(super) fn messages_per_chunk(bytes: usize) -> usize {
    (CHUNK_BYTES / bytes.max(1)).clamp(16, 1024)
}

/// A chain of messages and its answers.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) suite: Suite,
    /// Seals or opens; the key is ready.
    pub(super) op: Op,
    pub(super) key: Vec<u8>,
    pub(super) nonce_base: [u8; Suite::MAX_NONCE_LEN],
    pub(super) aad: Vec<u8>,
    /// The buffer before the first message.
    pub(super) start: Vec<u8>,
    /// The buffer after the last message.
    pub(super) end: Vec<u8>,
    /// The tag of every message: made when sealing, given when opening.
    pub(super) tags: Vec<TagBytes>,
}

impl Script {
    /// Has the oracle work out a chain of `messages` messages of `bytes` bytes each; every `variant` has its own key.
    pub(super) fn new(
        suite: Suite,
        op: Op,
        bytes: usize,
        aad: usize,
        messages: usize,
        variant: u64,
    ) -> Result<Script, CellError> {
        let oracle_failed = || CellError::failed(format_args!("the oracle cannot seal {bytes} B with {suite}"));
        let seed = variant << 40 | (bytes as u64) << 8 | suite as u64;
        let key = noise(suite.key_len(), seed);
        let aad = noise(aad, seed ^ 0xaad);
        let mut base = [0; Suite::MAX_NONCE_LEN];
        base[..suite.nonce_len()].copy_from_slice(&noise(suite.nonce_len(), seed ^ 0x404));
        let first = noise(bytes, seed ^ 0xda7a);
        let mut buffer = first.clone();
        let mut tags = vec![TagBytes::default(); messages];
        let cipher = RustCrypto::sealing(suite, &key).ok_or_else(oracle_failed)?;
        let mut seal = |i: usize| {
            let mut nonce_bytes = base;
            let nonce = nonce(&mut nonce_bytes, suite.nonce_len(), i);
            RustCrypto::seal(&cipher, nonce, &aad, &mut buffer)
                .map(|tag| tags[i] = tag)
                .ok_or_else(oracle_failed)
        };
        let (start, end) = if op.seals() {
            (0..messages).try_for_each(&mut seal)?;
            (first, buffer)
        } else {
            // Sealing from the last message to the first makes a buffer that opens from the first to the last.
            (0..messages).rev().try_for_each(&mut seal)?;
            (buffer, first)
        };
        Ok(Script {
            suite,
            op,
            key,
            nonce_base: base,
            aad,
            start,
            end,
            tags,
        })
    }

    /// Compares a chunk's outcome with the oracle's.
    ///
    /// # Errors
    /// [`CellError::Wrong`] with the first place that differs.
    pub(super) fn verify(&self, buffer: &[u8], tags: &[TagBytes]) -> Result<(), CellError> {
        if self.op == Op::Seal
            && let Some(i) = tags.iter().zip(&self.tags).position(|(got, want)| got != want)
        {
            let what = format!(
                "{}: the tag of message {i} of {} B differs",
                self.suite,
                self.start.len()
            );
            return Err(CellError::Wrong { what });
        }
        if let Some(at) = buffer.iter().zip(&self.end).position(|(got, want)| got != want) {
            let what = format!(
                "{}: byte {at} of {} differs after the last message",
                self.suite,
                self.end.len()
            );
            return Err(CellError::Wrong { what });
        }
        Ok(())
    }
}
