//! The packets of a case, with every answer known beforehand.

use std::ops::Range;

use sealway_bip324::OVERHEAD;

use super::ciphers::Ciphers;
use super::framed::Loop;
use super::links::{Link, SEED};
use crate::run::CellError;
use crate::stats::SplitMix64;
use crate::workload::batch::Sizes;
use crate::workload::bytes::noise;
use crate::workload::engine::RustCrypto;

/// Longest contents of a decoy, bytes; they are uniform from none on.
pub(super) const DECOY_MAX: usize = 64;

/// No packet.
const NONE: u32 = u32::MAX;

/// One packet.
struct Packet {
    /// Where its contents start.
    start: u32,
    connection: u16,
    decoy: bool,
    /// The next packet of the same connection.
    next: u32,
}

/// Packets side by side, and the same as on the wire.
pub(super) struct Traffic {
    packets: Vec<Packet>,
    /// The first packet of each connection.
    first: Vec<u32>,
    plain: Vec<u8>,
    pub(super) sealed: Vec<u8>,
}

impl Traffic {
    /// Draws `count` packets on connections in random order and has the oracle seal them. Each is a decoy with a
    /// probability of `decoys` per cent, on the connection of the message before it.
    pub(super) fn new(links: &[Link], sizes: Sizes, decoys: u8, count: usize) -> Result<Traffic, CellError> {
        let too_large = || CellError::failed(format_args!("{count} packets do not fit an arena"));
        let mut lengths = SplitMix64::stream(SEED, 0);
        let mut choice = SplitMix64::stream(SEED, 1);
        let mut packets: Vec<Packet> = Vec::with_capacity(count + 1);
        let mut total = 0usize;
        let mut connection = 0;
        for i in 0..count {
            let decoy = i > 0 && choice.below(100) < usize::from(decoys);
            if !decoy {
                connection = choice.below(links.len()) as u16;
            }
            packets.push(Packet {
                start: u32::try_from(total).map_err(|_| too_large())?,
                connection,
                decoy,
                next: NONE,
            });
            total += if decoy {
                choice.below(DECOY_MAX + 1)
            } else {
                sizes.draw(0, &mut lengths)
            };
        }
        let mut first = vec![NONE; links.len()];
        for (i, packet) in packets.iter_mut().enumerate().rev() {
            packet.next = first[usize::from(packet.connection)];
            first[usize::from(packet.connection)] = i as u32;
        }
        // The end of the last.
        packets.push(Packet {
            start: u32::try_from(total + count * OVERHEAD).map_err(|_| too_large())? - (count * OVERHEAD) as u32,
            connection: 0,
            decoy: true,
            next: NONE,
        });
        let mut traffic = Traffic {
            packets,
            first,
            plain: noise(total, SEED ^ 0xda7a),
            sealed: vec![0; total + count * OVERHEAD],
        };
        let mut oracle = Loop::<RustCrypto>::NEW.sealers(links)?;
        let mut sealed = std::mem::take(&mut traffic.sealed);
        for i in 0..count {
            let wire = &mut sealed[traffic.wire(i)];
            let sealer = &mut oracle[traffic.connection(i)];
            if !Loop::<RustCrypto>::seal(sealer, traffic.decoy(i), traffic.contents(i), wire) {
                return Err(CellError::failed(format_args!("the oracle refused packet {i}")));
            }
        }
        traffic.sealed = sealed;
        Ok(traffic)
    }

    /// Packets there are.
    pub(super) fn count(&self) -> usize {
        self.packets.len() - 1
    }

    /// Connections there are.
    pub(super) fn connections(&self) -> usize {
        self.first.len()
    }

    /// The connection of packet `i`.
    #[inline(always)]
    pub(super) fn connection(&self, i: usize) -> usize {
        usize::from(self.packets[i].connection)
    }

    /// The first packet of a connection, if it has any.
    pub(super) fn first_of(&self, connection: usize) -> Option<usize> {
        Some(self.first[connection] as usize).filter(|first| *first != NONE as usize)
    }

    /// The packet after packet `i` on its connection; none after the last.
    pub(super) fn next_of(&self, i: usize) -> Option<usize> {
        Some(self.packets[i].next as usize).filter(|next| *next != NONE as usize)
    }

    /// Whether packet `i` is a decoy.
    #[inline(always)]
    pub(super) fn decoy(&self, i: usize) -> bool {
        self.packets[i].decoy
    }

    /// The contents of packet `i`.
    #[inline(always)]
    pub(super) fn contents(&self, i: usize) -> &[u8] {
        &self.plain[self.packets[i].start as usize..self.packets[i + 1].start as usize]
    }

    /// Where packet `i` is on the wire.
    #[inline(always)]
    pub(super) fn wire(&self, i: usize) -> Range<usize> {
        self.wire_start(i)..self.wire_start(i + 1)
    }

    #[inline(always)]
    fn wire_start(&self, i: usize) -> usize {
        self.packets[i].start as usize + i * OVERHEAD
    }

    /// Where some packets are on the wire.
    pub(super) fn wires(&self, packets: &Range<usize>) -> Range<usize> {
        self.wire_start(packets.start)..self.wire_start(packets.end)
    }

    /// Messages among some packets, and the bytes of their contents: decoys do not count.
    pub(super) fn useful(&self, packets: &Range<usize>) -> (u64, u64) {
        let messages = packets.clone().filter(|&i| !self.decoy(i));
        messages.fold((0, 0), |(count, bytes), i| {
            (count + 1, bytes + self.contents(i).len() as u64)
        })
    }

    /// Bytes of the contents of some packets, decoys among them.
    pub(super) fn contents_len(&self, packets: &Range<usize>) -> usize {
        (self.packets[packets.end].start - self.packets[packets.start].start) as usize
    }

    /// What comes in one piece: from packet `i` on those of the same connection, up to about a read's worth of bytes.
    #[inline(always)]
    pub(super) fn piece(&self, i: usize, end: usize) -> usize {
        const READ: usize = 64 * 1024;
        let (connection, limit) = (self.packets[i].connection, self.wire_start(i) + READ);
        let more = |&j: &usize| self.packets[j].connection == connection && self.wire_start(j) < limit;
        (i + 1..end).take_while(more).last().unwrap_or(i) + 1
    }

    /// Flips one bit of packet `i` on the wire: the `byte`th of it.
    pub(super) fn flip(&mut self, i: usize, byte: usize) {
        let at = self.wire(i).start + byte;
        self.sealed[at] ^= 0x80;
    }
}

/// Compares what subjects make with the oracle's answers, connection by connection.
pub(super) struct Checker {
    /// The packet and the message that each connection has next.
    wires: Vec<u32>,
    messages: Vec<u32>,
    /// Packets and messages seen since the last verdict.
    seen: [u64; 2],
    wrong: Option<String>,
}

impl Checker {
    pub(super) fn new(traffic: &Traffic) -> Self {
        Checker {
            wires: traffic.first.clone(),
            messages: traffic.first.clone(),
            seen: [0; 2],
            wrong: None,
        }
    }

    /// Back to the start of a pass.
    pub(super) fn rewind(&mut self, traffic: &Traffic) {
        self.wires.clone_from(&traffic.first);
        self.messages.clone_from(&traffic.first);
        self.seen = [0; 2];
    }

    /// Bytes that a connection sends next: whole packets.
    pub(super) fn wire(&mut self, traffic: &Traffic, connection: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.wrong.is_none() {
            let i = self.wires.get(connection).copied().unwrap_or(NONE);
            let want = match i {
                NONE => None,
                i => Some(&traffic.sealed[traffic.wire(i as usize)]),
            };
            match want.and_then(|want| bytes.strip_prefix(want)) {
                Some(rest) => bytes = rest,
                None => {
                    self.wrong = Some(format!("packet {i} differs from the oracle's on the wire"));
                    return;
                }
            }
            self.wires[connection] = traffic.packets[i as usize].next;
            self.seen[0] += 1;
        }
    }

    /// The contents of the message that came next on a connection.
    pub(super) fn message(&mut self, traffic: &Traffic, connection: usize, contents: &[u8]) {
        let next = |i: u32| traffic.packets[i as usize].next;
        let mut i = self.messages.get(connection).copied().unwrap_or(NONE);
        while i != NONE && traffic.decoy(i as usize) {
            i = next(i);
        }
        if i == NONE || traffic.contents(i as usize) != contents {
            let len = contents.len();
            let what = format!("an opened message of {len} B is not the one of packet {i}");
            self.wrong.get_or_insert(what);
            return;
        }
        self.messages[connection] = next(i);
        self.seen[1] += 1;
    }

    /// The verdict on so many packets and messages.
    ///
    /// # Errors
    /// [`CellError::Wrong`] if one was not as it should be, or there were more or fewer.
    pub(super) fn verdict(&mut self, packets: u64, messages: u64) -> Result<(), CellError> {
        let seen = std::mem::take(&mut self.seen);
        let what = match self.wrong.take() {
            Some(what) => what,
            None if seen == [packets, messages] => return Ok(()),
            None => format!(
                "{} packets were made and {} messages opened, not {packets} and {messages}",
                seen[0], seen[1]
            ),
        };
        Err(CellError::Wrong { what })
    }
}
