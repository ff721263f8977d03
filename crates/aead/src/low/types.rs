//! What the kernels share: the shapes of keys, tasks and memory.

use core::marker::PhantomData;
use core::sync::atomic::{Ordering, compiler_fence};

use zeroize::Zeroize;

/// A ChaCha20 key as eight little-endian words, aligned so that a vector load of half a key stays within a cache line.
///
/// Not further: an allocator takes longer over memory with a larger alignment, as long as setting up all the rest of a key.
#[derive(Clone, Copy, Default)]
#[repr(C, align(16))]
pub(crate) struct KeyWords(pub(crate) [u32; 8]);

impl KeyWords {
    /// Fills in the words of a key.
    pub(crate) fn set(&mut self, key: &[u8; 32]) {
        for (word, bytes) in self.0.iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
}

impl Zeroize for KeyWords {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Which way a task goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    /// Plaintext in, ciphertext and tag out.
    Seal,
    /// Ciphertext and tag in, plaintext out.
    Open,
    /// Left alone: it did not authenticate.
    Skip,
}

/// One message of a batch, as the kernels see it: 40 bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Task {
    /// Words 12 to 15 of the ChaCha20 state of block 0: the counter, which is 0, and the nonce.
    pub(crate) nonce: [u32; 4],
    /// Where the input starts.
    pub(crate) src: u32,
    /// Where the output starts.
    pub(crate) dst: u32,
    /// Bytes of the message, without the tag.
    pub(crate) len: u32,
    /// Which key of the [`Keyring`].
    pub(crate) key: u32,
    /// Which job of the caller this is.
    pub(crate) job: u32,
    /// Direction.
    pub(crate) way: Use,
}

impl Task {
    /// Where the input starts.
    #[inline(always)]
    pub(crate) fn src(&self) -> usize {
        self.src as usize
    }

    /// Where the output starts.
    #[inline(always)]
    pub(crate) fn dst(&self) -> usize {
        self.dst as usize
    }

    /// Bytes of the message, without the tag.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Blocks of 16 bytes that Poly1305 takes of the message.
    #[inline(always)]
    pub(crate) fn mac_blocks(&self) -> usize {
        self.len().div_ceil(16)
    }
}

/// Keys that tasks name by number: the caller's resident ones first, then those derived for this batch.
#[derive(Clone, Copy)]
pub(crate) struct Keyring<'a> {
    /// Numbers from 0.
    pub(crate) resident: &'a [KeyWords],
    /// Numbers from [`Keyring::DERIVED`].
    pub(crate) derived: &'a [KeyWords],
}

impl<'a> Keyring<'a> {
    /// Number of the first derived key.
    pub(crate) const DERIVED: u32 = 1 << 31;

    /// The key with a number.
    ///
    /// # Panics
    /// If there is none: the planner names only keys that exist.
    #[inline(always)]
    pub(crate) fn get(&self, number: u32) -> &'a KeyWords {
        match number.checked_sub(Self::DERIVED) {
            Some(index) => &self.derived[index as usize],
            None => &self.resident[number as usize],
        }
    }
}

/// Where the messages of a batch are read and written.
#[derive(Debug)]
pub enum Memory<'a> {
    /// Read from one arena, written to another.
    Separate {
        /// Inputs.
        src: &'a [u8],
        /// Outputs.
        dst: &'a mut [u8],
    },
    /// Read and written in the same place: every job's input starts where its output does.
    InPlace(&'a mut [u8]),
}

impl Memory<'_> {
    /// Bytes that may be read.
    #[inline(always)]
    pub(crate) fn src(&self) -> &[u8] {
        match self {
            Memory::Separate { src, .. } => src,
            Memory::InPlace(arena) => arena,
        }
    }

    /// Bytes that may be written.
    #[inline(always)]
    pub(crate) fn dst(&mut self) -> &mut [u8] {
        match self {
            Memory::Separate { dst, .. } => dst,
            Memory::InPlace(arena) => arena,
        }
    }

    /// Bytes of the output arena.
    #[inline(always)]
    pub(crate) fn dst_ref(&self) -> &[u8] {
        match self {
            Memory::Separate { dst, .. } => dst,
            Memory::InPlace(arena) => arena,
        }
    }

    /// Where reading and writing starts. In place, both come from the one borrow that may write.
    #[inline(always)]
    pub(super) fn pointers(&mut self) -> (*const u8, *mut u8) {
        let dst = self.dst().as_mut_ptr();
        match self {
            Memory::Separate { src, .. } => (src.as_ptr(), dst),
            Memory::InPlace(_) => (dst.cast_const(), dst),
        }
    }

    /// True if input and output of the task lie inside, tags included.
    #[inline(always)]
    pub(crate) fn holds(&self, task: &Task) -> bool {
        let ends = |at: usize, arena: usize| {
            at.checked_add(task.len())
                .and_then(|end| end.checked_add(16))
                .is_some_and(|end| end <= arena)
        };
        let fits = |at: usize, arena: usize| at.checked_add(task.len()).is_some_and(|end| end <= arena);
        let (src, dst) = (self.src().len(), self.dst_ref().len());
        let placed = match self {
            Memory::Separate { .. } => true,
            Memory::InPlace(_) => task.src() == task.dst(),
        };
        placed
            && match task.way {
                Use::Seal => fits(task.src(), src) && ends(task.dst(), dst),
                Use::Open | Use::Skip => ends(task.src(), src) && fits(task.dst(), dst),
            }
    }

    /// The ciphertext of a task, and behind it the place of its tag.
    #[inline(always)]
    pub(super) fn ciphertext_and_tag(&self, task: &Task) -> &[u8] {
        match task.way {
            Use::Seal => &self.dst_ref()[task.dst()..][..task.len() + 16],
            Use::Open | Use::Skip => &self.src()[task.src()..][..task.len() + 16],
        }
    }

    /// The ciphertext of a task: what was written when sealing, what is read when opening.
    #[inline(always)]
    pub(crate) fn ciphertext(&self, task: &Task) -> &[u8] {
        match task.way {
            Use::Seal => &self.dst_ref()[task.dst()..][..task.len()],
            Use::Open | Use::Skip => &self.src()[task.src()..][..task.len()],
        }
    }
}

/// What Poly1305 needs to know of one message besides its ciphertext: one cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct MacRecord {
    /// r, clamped, as two little-endian halves.
    pub(crate) r: [u64; 2],
    /// s, likewise.
    pub(crate) s: [u64; 2],
    /// Accumulator after the associated data, in limbs of 44, 44 and 42 bits.
    pub(crate) h: [u64; 3],
    /// Bytes of associated data.
    pub(crate) aad_len: u32,
    /// Unused; keeps the record one cache line.
    pub(crate) spare: u32,
}

/// How full the vector lanes of a kernel were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lanes {
    /// Lane-steps that did work.
    pub used: u64,
    /// Lane-steps there were.
    pub offered: u64,
}

impl Lanes {
    /// Adds the counts of another stretch of work.
    pub(crate) fn add(&mut self, other: Lanes) {
        self.used += other.used;
        self.offered += other.offered;
    }

    /// The share of lane-steps that did work, from 0 to 1; 1 if there were none.
    pub fn utilisation(&self) -> f64 {
        if self.offered == 0 {
            1.0
        } else {
            self.used as f64 / self.offered as f64
        }
    }
}

/// Overwrites with zeros, in a way the compiler does not leave out.
///
/// Only for types of plain numbers, for which all zeros is a value.
pub(crate) fn wipe<T: Copy + Default>(secrets: &mut [T]) {
    secrets.fill(T::default());
    // The compiler must assume that what stands behind this reads the zeros.
    core::hint::black_box(secrets);
    compiler_fence(Ordering::SeqCst);
}

/// Clears `WORDS` words of the stack below the caller, where kernels called from the same place kept their registers when
/// they ran out.
#[inline(never)]
pub(crate) fn scrub_stack<const WORDS: usize>() {
    // The compiler must lay out the zeros, since it cannot see what is done with them.
    core::hint::black_box(&mut [0u64; WORDS]);
}

/// Blocks about to be worked on, `N` at a time, each perhaps of another message.
pub(super) struct Stage<'a, const N: usize> {
    pub(super) keys: [&'a KeyWords; N],
    pub(super) nonces: [[u32; 4]; N],
    pub(super) src: [*const u8; N],
    pub(super) dst: [*mut u8; N],
    /// Bytes of each block that there are, 1 to 64; 0 for a lane not in use.
    pub(super) len: [usize; N],
}

/// Cuts every task that is not to be skipped into blocks and calls `run` on them, `N` at a time.
///
/// Whatever lanes `run` is given, their `src` is readable and their `dst` writable for `len` bytes, and nothing else
/// refers to that memory meanwhile.
#[inline(always)]
pub(super) fn for_each_stage<const N: usize>(
    memory: &mut Memory<'_>,
    keys: Keyring<'_>,
    tasks: &[Task],
    mut run: impl FnMut(&Stage<'_, N>),
) -> Lanes {
    let zero = KeyWords::default();
    let (src, dst) = memory.pointers();
    let mut stage = Stage {
        keys: [&zero; N],
        nonces: [[0; 4]; N],
        src: [src; N],
        dst: [dst; N],
        len: [0; N],
    };
    let mut count = 0;
    let mut lanes = Lanes::default();
    for task in tasks.iter().filter(|task| task.way != Use::Skip) {
        assert!(memory.holds(task), "a task outside its memory");
        let key = keys.get(task.key);
        let mut nonce = task.nonce;
        for at in (0..task.len()).step_by(64) {
            nonce[0] = nonce[0].wrapping_add(1);
            stage.keys[count] = key;
            stage.nonces[count] = nonce;
            stage.src[count] = src.wrapping_add(task.src() + at);
            stage.dst[count] = dst.wrapping_add(task.dst() + at);
            stage.len[count] = (task.len() - at).min(64);
            count += 1;
            if count == N {
                run(&stage);
                lanes.add(Lanes {
                    used: N as u64,
                    offered: N as u64,
                });
                count = 0;
            }
        }
    }
    if count > 0 {
        stage.len[count..].fill(0);
        run(&stage);
        lanes.add(Lanes {
            used: count as u64,
            offered: N as u64,
        });
    }
    lanes
}

/// The text of one message: where it is read and where it is written, the same place or another.
pub(crate) struct Text<'a> {
    src: *const u8,
    dst: *mut u8,
    len: usize,
    life: PhantomData<(&'a [u8], &'a mut [u8])>,
}

impl<'a> Text<'a> {
    /// Read and written in the same place.
    #[inline(always)]
    pub(crate) fn in_place(text: &'a mut [u8]) -> Self {
        let dst = text.as_mut_ptr();
        Text {
            src: dst.cast_const(),
            dst,
            len: text.len(),
            life: PhantomData,
        }
    }

    /// Read in one place and written in another.
    ///
    /// # Panics
    /// Unless both are of one length.
    #[inline(always)]
    pub(crate) fn separate(src: &'a [u8], dst: &'a mut [u8]) -> Self {
        assert_eq!(src.len(), dst.len(), "text is read and written in one length");
        Text {
            src: src.as_ptr(),
            dst: dst.as_mut_ptr(),
            len: src.len(),
            life: PhantomData,
        }
    }

    /// The text of a task, without its tag.
    ///
    /// # Panics
    /// If the memory does not hold the task.
    #[inline(always)]
    pub(crate) fn of(memory: &'a mut Memory<'_>, task: &Task) -> Self {
        assert!(memory.holds(task), "a task outside its memory");
        match memory {
            Memory::Separate { src, dst } => {
                Self::separate(&src[task.src()..][..task.len()], &mut dst[task.dst()..][..task.len()])
            }
            Memory::InPlace(arena) => Self::in_place(&mut arena[task.dst()..][..task.len()]),
        }
    }

    /// Bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What is read.
    #[inline(always)]
    pub(super) fn src(&self) -> &[u8] {
        // SAFETY: made from a slice of this length, which is borrowed for as long as this value lives; nothing writes
        // while the result is borrowed, since writing takes the pointers, which borrow this value mutably.
        unsafe { core::slice::from_raw_parts(self.src, self.len) }
    }

    /// What has been written.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    pub(super) fn dst(&self) -> &[u8] {
        // SAFETY: as for `src`.
        unsafe { core::slice::from_raw_parts(self.dst, self.len) }
    }

    /// Copies from what is read.
    #[cfg(any(
        test,
        not(feature = "aes"),
        not(all(target_arch = "x86_64", target_feature = "sse2"))
    ))]
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.src()[at..][..into.len()]);
    }

    /// Copies to where is written.
    #[cfg(any(
        test,
        not(feature = "aes"),
        not(all(target_arch = "x86_64", target_feature = "sse2"))
    ))]
    pub(super) fn write(&mut self, at: usize, from: &[u8]) {
        // SAFETY: made from a slice of this length that may be written, and nothing else refers to it meanwhile.
        let dst = unsafe { core::slice::from_raw_parts_mut(self.dst, self.len) };
        dst[at..][..from.len()].copy_from_slice(from);
    }

    /// Where to read, where to write, and how many bytes.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    pub(super) fn pointers(&mut self) -> (*const u8, *mut u8, usize) {
        (self.src, self.dst, self.len)
    }
}
