//! Buffers that are held only while there is something in them.
//!
//! A connection that waits holds none. One that has something to read takes a buffer from the free list of the thread it
//! runs on and gives it back as soon as what it held has been written. The list is last-in first-out, so that the next
//! connection gets memory that is still in the cache.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Sizes of buffers, bytes. The middle ones have room for a number of whole TLS records (at most 16,645 bytes on the wire).
/// With what sealing adds to the content of the largest, and a record of which the rest is still to come, one direction of a
/// connection holds less than 256 KiB when nobody takes what is sent.
const SIZES: [usize; 4] = [4 << 10, 20 << 10, 84 << 10, 224 << 10];

/// How many bytes of each size one thread keeps when nobody uses them.
const KEPT_PER_SIZE: usize = 1 << 20;

thread_local! {
    static FREE: RefCell<[Vec<Box<[u8]>>; SIZES.len()]> = const { RefCell::new([const { Vec::new() }; SIZES.len()]) };
}

thread_local! {
    static FREE_OUT: RefCell<[Vec<Vec<u8>>; SIZES.len()]> =
        const { RefCell::new([const { Vec::new() }; SIZES.len()]) };
}

/// Bytes of a vector for what a buffer of this size holds once it is sealed.
const fn sealed(size: usize) -> usize {
    size + size / 64 + 512
}

/// Takes an empty vector with room for `need` bytes, for what is about to be sealed.
pub(crate) fn take_out(need: usize) -> Vec<u8> {
    let Some(at) = SIZES.iter().position(|&size| sealed(size) >= need) else {
        return Vec::with_capacity(need);
    };
    let free = FREE_OUT.with_borrow_mut(|free| free[at].pop());
    free.unwrap_or_else(|| Vec::with_capacity(sealed(SIZES[at])))
}

/// Gives a vector back for the next one to take.
pub(crate) fn give_out(mut used: Vec<u8>) {
    let Some(at) = SIZES.iter().rposition(|&size| used.capacity() >= sealed(size)) else {
        return;
    };
    used.clear();
    FREE_OUT.with_borrow_mut(|free| {
        if (free[at].len() + 1) * SIZES[at] <= KEPT_PER_SIZE && used.capacity() <= 2 * SIZES[SIZES.len() - 1] {
            free[at].push(used);
        }
    });
}

/// Size class of a buffer.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Class(u8);

impl Class {
    /// For what is read when nothing is known: a request, a header. 4 KiB.
    pub(crate) const SMALL: Class = Class(0);
    /// Largest, 224 KiB.
    pub(crate) const LARGEST: Class = Class(SIZES.len() as u8 - 1);

    /// The smallest class that holds `len` bytes, or `None` if none does.
    pub(crate) fn holding(len: usize) -> Option<Class> {
        SIZES.iter().position(|&size| size >= len).map(|at| Class(at as u8))
    }

    /// Bytes of a buffer of this class.
    pub(crate) const fn size(self) -> usize {
        SIZES[self.0 as usize]
    }

    /// The next larger class, or itself.
    pub(crate) fn larger(self) -> Class {
        Class((self.0 + 1).min(Self::LARGEST.0))
    }

    /// The next smaller class, or itself.
    pub(crate) fn smaller(self) -> Class {
        Class(self.0.saturating_sub(1))
    }
}

/// A buffer of a fixed size. It goes back to the free list of the thread that drops it.
pub(crate) struct Buf {
    bytes: Box<[u8]>,
    class: Class,
}

impl Buf {
    /// Takes a buffer. Its contents are whatever was in it before.
    pub(crate) fn take(class: Class) -> Buf {
        let free = FREE.with_borrow_mut(|free| free[usize::from(class.0)].pop());
        let bytes = free.unwrap_or_else(|| vec![0; class.size()].into_boxed_slice());
        Buf { bytes, class }
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let at = usize::from(self.class.0);
        // A thread that is ending has no list any more: then the memory is simply freed.
        let _ = FREE.try_with(|free| {
            if let Ok(mut free) = free.try_borrow_mut()
                && (free[at].len() + 1) * SIZES[at] <= KEPT_PER_SIZE
            {
                free[at].push(bytes);
            }
        });
    }
}

impl Deref for Buf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_the_next_one_taken() {
        let first = Buf::take(Class::SMALL);
        let at = first.as_ptr();
        drop(first);
        assert_eq!(Buf::take(Class::SMALL).as_ptr(), at);
    }

    #[test]
    fn a_thread_keeps_no_more_than_its_share() {
        let many: Vec<Buf> = (0..20).map(|_| Buf::take(Class::LARGEST)).collect();
        drop(many);
        let kept = FREE.with_borrow(|free| free[SIZES.len() - 1].len());
        assert_eq!(kept, KEPT_PER_SIZE / Class::LARGEST.size());
    }

    #[test]
    fn what_the_largest_buffer_seals_to_is_used_again() {
        // Room for the framing of 16 KiB at a time, as the stream asks for it.
        let need = Class::LARGEST.size() + (Class::LARGEST.size() / (16 << 10) + 1) * 128;
        let first = take_out(need);
        let (at, room) = (first.as_ptr(), first.capacity());
        give_out(first);
        let again = take_out(need);
        assert_eq!((again.as_ptr(), again.capacity()), (at, room));
    }

    #[test]
    fn classes_hold_what_they_say() {
        assert_eq!(Class::holding(0), Some(Class::SMALL));
        assert_eq!(Class::holding(4096), Some(Class::SMALL));
        assert_eq!(Class::holding(4097).map(Class::size), Some(20 << 10));
        assert_eq!(Class::holding(224 << 10), Some(Class::LARGEST));
        assert_eq!(Class::holding((224 << 10) + 1), None);
        assert_eq!(Class::LARGEST.larger(), Class::LARGEST);
        assert_eq!(Class::SMALL.smaller(), Class::SMALL);
    }
}
