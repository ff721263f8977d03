//! Gathering a packet, without taking the peer's word for its length.

use alloc::vec::Vec;

use crate::{HEADER_LEN, LENGTH_LEN, TAG_LEN};

use super::{Awaiting, Contents};

/// Most bytes that are reserved beyond those that have come.
const AHEAD: usize = 256 * 1024;

/// Fewest bytes that are reserved if a packet has that many.
const SMALL: usize = 1024;

/// A packet on its way in.
#[derive(Default)]
pub(super) struct Assembly {
    length: [u8; LENGTH_LEN],
    /// Bytes of `length` that are there.
    have: usize,
    /// Bytes that follow the length, once that is open.
    need: usize,
    packet: Vec<u8>,
}

impl Assembly {
    /// True until a length is open.
    pub(super) const fn wants_length(&self) -> bool {
        self.need == 0
    }

    /// Takes bytes of the length; gives how many, and the length once it is whole.
    pub(super) fn push_length(&mut self, input: &[u8]) -> (usize, Option<[u8; LENGTH_LEN]>) {
        let used = input.len().min(LENGTH_LEN - self.have);
        self.length[self.have..self.have + used].copy_from_slice(&input[..used]);
        self.have += used;
        (used, (self.have == LENGTH_LEN).then_some(self.length))
    }

    /// Says how many bytes follow, at least 17.
    pub(super) const fn expect(&mut self, need: usize) {
        self.need = need;
    }

    /// Takes bytes of the packet; gives how many, and the packet once it is whole.
    pub(super) fn push(&mut self, input: &[u8]) -> (usize, Option<&mut [u8]>) {
        let had = self.packet.len();
        let used = input.len().min(self.need - had);
        let have = had + used;
        if self.packet.capacity() < have {
            // As much again as has come, within bounds: memory follows what was sent, not what was announced.
            let room = self.need.min(have + have.clamp(SMALL, AHEAD));
            self.packet.reserve_exact(room - had);
        }
        self.packet.extend_from_slice(&input[..used]);
        (used, (have == self.need).then_some(&mut self.packet[..]))
    }

    /// Ends a packet that has been opened: its contents.
    pub(super) fn finish(&mut self) -> Contents {
        let mut packet = core::mem::take(&mut self.packet);
        packet.truncate(self.need - TAG_LEN);
        (self.have, self.need) = (0, 0);
        Contents { packet }
    }

    /// Ends a packet that is thrown away: the length of its contents.
    pub(super) fn discard(&mut self) -> usize {
        let len = self.need - TAG_LEN - HEADER_LEN;
        (self.have, self.need) = (0, 0);
        if self.packet.capacity() > 4 * SMALL {
            self.packet = Vec::new();
        } else {
            self.packet.clear();
        }
        len
    }

    pub(super) const fn awaiting(&self) -> Awaiting {
        if self.wants_length() {
            Awaiting::Length {
                missing: LENGTH_LEN - self.have,
            }
        } else {
            Awaiting::Packet {
                missing: self.need - self.packet.len(),
            }
        }
    }

    /// What has come of a packet that is not whole, as it came.
    pub(super) fn into_unread(self) -> Vec<u8> {
        let mut unread = self.length[..self.have].to_vec();
        unread.extend_from_slice(&self.packet);
        unread
    }

    /// Bytes that have come and bytes of memory for them.
    #[cfg(test)]
    pub(super) fn memory(&self) -> (usize, usize) {
        (self.packet.len(), self.packet.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_has_come() {
        let need = 16_777_215 + 17;
        for piece in [1, 777, 65_536, 300_000] {
            let mut assembly = Assembly::default();
            assembly.expect(need);
            let input = vec![0; piece];
            let mut came = 0;
            let rounds = (2 << 20) / piece.max(64);
            for _ in 0..rounds {
                let (used, packet) = assembly.push(&input);
                came += used;
                assert!(packet.is_none());
                let (len, capacity) = assembly.memory();
                assert_eq!(len, came);
                assert!(capacity <= came + AHEAD, "{capacity} bytes for {came}");
                assert!(capacity <= (2 * came).max(came + SMALL), "{capacity} bytes for {came}");
            }
        }
    }

    #[test]
    fn no_more_memory_than_the_packet_has() {
        let mut assembly = Assembly::default();
        assembly.expect(17);
        assert!(assembly.push(&[1]).1.is_none());
        assert!(assembly.memory().1 <= 17);
        assert_eq!(assembly.push(&[1; 20]).0, 16);
        assert_eq!(assembly.finish().len(), 0);
        assert!(assembly.wants_length());
    }
}
