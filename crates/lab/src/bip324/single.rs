//! Packets one at a time: our own sealer and opener, and the loops of others.

use std::ops::Range;
use std::rc::Rc;

use sealway_bip324::{HEADER_LEN, OVERHEAD, TAG_LEN};

use super::ciphers::Ciphers;
use super::ends::Ends;
use super::links::{Link, failed};
use super::traffic::Traffic;
use crate::run::CellError;
use crate::workload::batch::Op;

/// The place of a packet in an arena, and its connection.
type Place = (usize, Range<usize>);

/// Packets of all connections, one at a time.
pub(super) struct Single<C: Ciphers> {
    ciphers: Rc<C>,
    links: Rc<Vec<Link>>,
    connections: usize,
    op: Op,
    sealers: Vec<C::Sealer>,
    openers: Vec<C::Opener>,
    wire: Arena,
    text: Arena,
}

/// Memory that is written from the start on for each batch.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    places: Vec<Place>,
    filled: usize,
}

impl Arena {
    fn clear(&mut self) {
        self.places.clear();
        self.filled = 0;
    }

    /// Room for so many bytes; grown while warming up, never cleared.
    #[inline(always)]
    fn room(&mut self, len: usize) -> Range<usize> {
        let room = self.filled..self.filled + len;
        if room.end > self.bytes.len() {
            self.bytes.resize(room.end.next_power_of_two(), 0);
        }
        self.filled = room.end;
        room
    }
}

impl<C: Ciphers> Single<C> {
    pub(super) fn new(ciphers: Rc<C>, links: Rc<Vec<Link>>, traffic: &Traffic, op: Op) -> Self {
        Single {
            ciphers,
            links,
            connections: traffic.connections(),
            op,
            sealers: Vec::new(),
            openers: Vec::new(),
            wire: Arena::default(),
            text: Arena::default(),
        }
    }
}

/// Opens a piece of whole packets.
#[inline(always)]
fn open_piece<C: Ciphers>(
    opener: &mut C::Opener,
    connection: usize,
    mut piece: &[u8],
    text: &mut Arena,
) -> Result<(), CellError> {
    let wrong = || {
        CellError::wrong(format_args!(
            "{} does not open a packet of connection {connection}",
            C::NAME
        ))
    };
    while let Some((length, rest)) = piece.split_first_chunk() {
        let len = C::length(opener, *length).ok_or_else(wrong)?;
        let (sealed, rest) = rest.split_at_checked(len).ok_or_else(wrong)?;
        let room = text.room(len);
        let decoy = C::open(opener, sealed, &mut text.bytes[room.clone()]).ok_or_else(wrong)?;
        let contents = room.start + HEADER_LEN..room.end - TAG_LEN;
        if !decoy {
            text.places.push((connection, contents));
        }
        piece = rest;
    }
    Ok(())
}

impl<C: Ciphers> Ends for Single<C> {
    fn rewind(&mut self) -> Result<(), CellError> {
        let links = &self.links[..self.connections];
        if self.op.seals() {
            self.sealers = self.ciphers.sealers(links)?;
        }
        if self.op.opens() {
            self.openers = self.ciphers.openers(links)?;
        }
        Ok(())
    }

    fn seal(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.wire.clear();
        for i in packets {
            let (connection, contents) = (traffic.connection(i), traffic.contents(i));
            let room = self.wire.room(contents.len() + OVERHEAD);
            let wire = &mut self.wire.bytes[room.clone()];
            if !C::seal(&mut self.sealers[connection], traffic.decoy(i), contents, wire) {
                return Err(failed(format_args!("{} refused packet {i}", C::NAME)));
            }
            self.wire.places.push((connection, room));
        }
        Ok(())
    }

    fn open(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.text.clear();
        let mut i = packets.start;
        while i < packets.end {
            let end = traffic.piece(i, packets.end);
            let connection = traffic.connection(i);
            let piece = &traffic.sealed[traffic.wires(&(i..end))];
            open_piece::<C>(&mut self.openers[connection], connection, piece, &mut self.text)?;
            i = end;
        }
        Ok(())
    }

    fn pair(&mut self, traffic: &Traffic, packets: Range<usize>) -> Result<(), CellError> {
        self.seal(traffic, packets)?;
        self.text.clear();
        for (connection, place) in &self.wire.places {
            let piece = &self.wire.bytes[place.clone()];
            open_piece::<C>(&mut self.openers[*connection], *connection, piece, &mut self.text)?;
        }
        Ok(())
    }

    fn wires(&self, see: &mut dyn FnMut(usize, &[u8])) {
        for (connection, place) in &self.wire.places {
            see(*connection, &self.wire.bytes[place.clone()]);
        }
    }

    fn messages(&self, see: &mut dyn FnMut(usize, &[u8])) {
        for (connection, place) in &self.text.places {
            see(*connection, &self.text.bytes[place.clone()]);
        }
    }
}
