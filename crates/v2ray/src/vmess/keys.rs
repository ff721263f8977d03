//! The keys of all users, laid out to be tried eight at a time on one block.
//!
//! Whose an authentication id is can only be found by decrypting it with every user's key. One key at a time, that waits for
//! the latency of ten AES rounds each; eight keys at a time it does not, so the round functions are called for groups of
//! eight users, whose round keys stand together.
//!
//! The last round is not finished. The AES round function ends with InvMixColumns, which the last round of the cipher does
//! not have; but InvMixColumns is linear and works on columns of four bytes, so the first column can be compared as it is,
//! with the first round key and the expected high half of the time put through the same function. Only what passes, a user's
//! own block or one in four thousand million others, is decrypted in full.

use aes::Block;
use aes::hazmat::{Block8, cipher_round, equiv_inv_cipher_round_par, inv_mix_columns};
use zeroize::Zeroize;

/// Users in a group.
pub(super) const GROUP: usize = 8;
/// Rounds between the first and the last.
const MIDDLE: usize = 9;

type Column = [u8; 4];

/// Round keys of eight users, for decryption, in the order in which they are used.
struct Group {
    first: Block8,
    middle: [Block8; MIDDLE],
    /// First columns of the last round keys, through InvMixColumns.
    last: [Column; GROUP],
}

impl Group {
    fn empty() -> Self {
        Group {
            first: Block8::default(),
            middle: std::array::from_fn(|_| Block8::default()),
            last: [[0; 4]; GROUP],
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for blocks in self.middle.iter_mut().chain([&mut self.first]) {
            blocks.iter_mut().for_each(|block| block.as_mut_slice().zeroize());
        }
        self.last.zeroize();
    }
}

/// What the first four bytes of a decrypted block may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted([Column; 2]);

impl Wanted {
    pub(super) fn new(either: [Column; 2]) -> Self {
        Wanted(either.map(through_inv_mix_columns))
    }
}

fn through_inv_mix_columns(column: Column) -> Column {
    let mut block = Block::default();
    block[..4].copy_from_slice(&column);
    inv_mix_columns(&mut block);
    [block[0], block[1], block[2], block[3]]
}

fn xor(a: Column, b: Column) -> Column {
    (u32::from_ne_bytes(a) ^ u32::from_ne_bytes(b)).to_ne_bytes()
}

/// The keys, by number.
///
/// Each group stays where it is: when there are more, no keys are copied, and none are left behind.
#[derive(Default)]
pub(super) struct Keys {
    #[expect(
        clippy::vec_box,
        reason = "a vector of keys that grows would copy them all, and leave those behind"
    )]
    groups: Vec<Box<Group>>,
    len: usize,
}

impl Keys {
    /// How many groups there are; the last may have free places.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Appends a key.
    pub(super) fn push(&mut self, key: &[u8; 16]) {
        if self.len.is_multiple_of(GROUP) {
            self.groups.push(Box::new(Group::empty()));
        }
        self.len += 1;
        self.set(self.len - 1, key);
    }

    /// Replaces the key with this number.
    pub(super) fn set(&mut self, number: usize, key: &[u8; 16]) {
        let (Some(group), lane) = (self.groups.get_mut(number / GROUP), number % GROUP) else {
            return;
        };
        let mut rounds = expand(key);
        group.first[lane] = rounds[10];
        for (blocks, round) in group.middle.iter_mut().zip(rounds[1..10].iter_mut().rev()) {
            inv_mix_columns(round);
            blocks[lane] = *round;
        }
        let [a, b, c, d, ..] = rounds[0].0;
        group.last[lane] = through_inv_mix_columns([a, b, c, d]);
        rounds.iter_mut().for_each(|round| round.as_mut_slice().zeroize());
    }

    /// Takes the last key away. What is left of it in its place is harmless: see [`Keys::matches`].
    pub(super) fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        self.groups.truncate(self.len.div_ceil(GROUP));
    }

    /// Which keys of a group may have made this block: bit n stands for the n-th of the group. Bits of free places mean
    /// nothing.
    #[inline]
    pub(super) fn matches(&self, group: usize, block: &[u8; 16], wanted: Wanted) -> u8 {
        let Some(group) = self.groups.get(group) else {
            return 0;
        };
        let mut state = Block8::default();
        for (state, key) in state.iter_mut().zip(&group.first) {
            let mixed = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(key.0);
            *state = Block::from(mixed.to_ne_bytes());
        }
        for keys in &group.middle {
            equiv_inv_cipher_round_par(&mut state, keys);
        }
        equiv_inv_cipher_round_par(&mut state, &Block8::default());
        let mut bits = 0;
        for (lane, (state, last)) in state.iter().zip(&group.last).enumerate() {
            let column = xor([state[0], state[1], state[2], state[3]], *last);
            bits |= u8::from(wanted.0.contains(&column)) << lane;
        }
        bits
    }
}

/// The round keys of AES-128 for encryption (FIPS 197 section 5.2).
fn expand(key: &[u8; 16]) -> [Block; 11] {
    let mut rounds = [Block::default(); 11];
    rounds[0] = Block::from(*key);
    let mut constant = 1u8;
    for i in 1..11 {
        let before = rounds[i - 1];
        // RotWord, then SubWord: of a state whose columns are all alike, ShiftRows changes nothing.
        let mut word = Block::default();
        for column in word.chunks_exact_mut(4) {
            column.copy_from_slice(&[before[13], before[14], before[15], before[12]]);
        }
        cipher_round(&mut word, &Block::default());
        inv_mix_columns(&mut word);
        let mut carry = [word[0] ^ constant, word[1], word[2], word[3]];
        for at in (0..16).step_by(4) {
            carry = xor(carry, [before[at], before[at + 1], before[at + 2], before[at + 3]]);
            rounds[i][at..at + 4].copy_from_slice(&carry);
        }
        constant = constant << 1 ^ if constant & 0x80 == 0 { 0 } else { 0x1b };
    }
    rounds
}

#[cfg(test)]
mod tests {
    use aes::Aes128Enc;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};

    use super::*;
    use crate::text::unhex;

    /// FIPS 197 appendix A.1.
    #[test]
    fn the_expansion_of_the_standard() {
        let mut key = [0; 16];
        key.copy_from_slice(&unhex("2b7e151628aed2a6abf7158809cf4f3c"));
        let rounds = expand(&key);
        assert_eq!(rounds[1].to_vec(), unhex("a0fafe1788542cb123a339392a6c7605"));
        assert_eq!(rounds[10].to_vec(), unhex("d014f9a8c9ee2589e13f0cc8b6630ca6"));
    }

    fn key(n: usize) -> [u8; 16] {
        let mut key = [3; 16];
        key[..8].copy_from_slice(&(n as u64).to_be_bytes());
        key
    }

    #[test]
    fn finds_whose_block_it_is_and_nobody_elses() {
        let mut keys = Keys::default();
        for n in 0..21 {
            keys.push(&key(n));
        }
        assert_eq!(keys.groups(), 3);
        let matches = |keys: &Keys, n: usize, plain: [u8; 16], wanted| -> Vec<usize> {
            let mut block = Block::from(plain);
            Aes128Enc::new(&key(n).into()).encrypt_block(&mut block);
            (0..24)
                .filter(|i| keys.matches(i / GROUP, &block.0, Wanted::new(wanted)) >> (i % GROUP) & 1 == 1)
                .collect()
        };
        let mut plain = [9; 16];
        plain[..4].copy_from_slice(&[0, 0, 0, 7]);
        for n in 0..21 {
            assert_eq!(matches(&keys, n, plain, [[0, 0, 0, 7]; 2]), [n]);
            assert_eq!(matches(&keys, n, plain, [[1; 4], [0, 0, 0, 7]]), [n]);
            assert_eq!(matches(&keys, n, plain, [[0, 0, 0, 6], [1, 0, 0, 7]]), [0_usize; 0]);
        }
        keys.set(2, &key(20));
        keys.pop();
        assert_eq!(matches(&keys, 2, plain, [[0, 0, 0, 7]; 2]), [0_usize; 0]);
        assert!(matches(&keys, 20, plain, [[0, 0, 0, 7]; 2]).contains(&2));
        for _ in 0..4 {
            keys.pop();
        }
        assert_eq!(keys.groups(), 2);
    }
}
