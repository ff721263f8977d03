//! Who waits for whom.

use std::collections::HashMap;

use sealway_session::handshake::Role;
use tokio::sync::oneshot;

use sealway_drop::relay::wire::TOKEN_LEN;

/// Nameplates have at most this many digits: far more than connections can wait.
const DIGITS: u32 = 9;

/// Up to this many digits all free numbers are looked at; above, numbers are drawn until one is free.
const SMALL: u32 = 3;

/// Numbers drawn of one length before longer ones are tried.
const DRAWS: usize = 16;

/// A place where somebody waits, and the way of calling them: `V` is what the caller brings along.
struct Slot<V> {
    id: u64,
    call: oneshot::Sender<V>,
}

/// What somebody waits under.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Key {
    Nameplate(u32),
    Token([u8; TOKEN_LEN]),
}

/// Right to be called under a key.
pub(super) struct Ticket<V> {
    pub(super) key: Key,
    id: u64,
    pub(super) called: oneshot::Receiver<V>,
}

/// What became of a client that came with a token.
pub(super) enum Paired<V> {
    /// The other end was called.
    Called,
    /// Nobody was there: the client waits now. An earlier one with the same role is called no more.
    Waits(V, Ticket<V>),
}

/// Who waits for whom.
pub(super) struct WaitingRoom<V> {
    nameplates: HashMap<u32, Slot<V>>,
    /// The tokens are random to everyone but the two ends, and the map's hash has a random key: the time that a search takes
    /// says nothing about them.
    tokens: HashMap<[u8; TOKEN_LEN], (Role, Slot<V>)>,
    next: u64,
}

impl<V> WaitingRoom<V> {
    pub(super) fn new() -> Self {
        WaitingRoom {
            nameplates: HashMap::new(),
            tokens: HashMap::new(),
            next: 0,
        }
    }

    fn slot(&mut self, key: Key) -> (Slot<V>, Ticket<V>) {
        let id = self.next;
        self.next += 1;
        let (call, called) = oneshot::channel();
        (Slot { id, call }, Ticket { key, id, called })
    }

    /// A new nameplate: a random one of those with the fewest digits. `None` if `random` gives nothing.
    pub(super) fn open(&mut self, random: &mut dyn FnMut() -> Option<u64>) -> Option<Ticket<V>> {
        let nameplate = self.free_nameplate(random)?;
        let (slot, ticket) = self.slot(Key::Nameplate(nameplate));
        self.nameplates.insert(nameplate, slot);
        Some(ticket)
    }

    fn free_nameplate(&self, random: &mut dyn FnMut() -> Option<u64>) -> Option<u32> {
        for digits in 1..=DIGITS {
            let (low, high) = (10u32.pow(digits - 1), 10u32.pow(digits));
            if digits <= SMALL {
                let free: Vec<u32> = (low..high).filter(|n| !self.nameplates.contains_key(n)).collect();
                if !free.is_empty() {
                    return Some(free[below(random()?, free.len() as u64) as usize]);
                }
                continue;
            }
            for _ in 0..DRAWS {
                let drawn = low + below(random()?, u64::from(high - low)) as u32;
                if !self.nameplates.contains_key(&drawn) {
                    return Some(drawn);
                }
            }
        }
        None
    }

    /// Calls whoever waits under a nameplate, which is gone then. Gives the client back if nobody does.
    pub(super) fn claim(&mut self, nameplate: u32, client: V) -> Result<(), V> {
        match self.nameplates.remove(&nameplate) {
            Some(slot) => slot.call.send(client),
            None => Err(client),
        }
    }

    /// Calls whoever waits with the same token and the other role, or begins to wait.
    pub(super) fn pair(&mut self, token: &[u8; TOKEN_LEN], role: Role, mut client: V) -> Paired<V> {
        if let Some((other, slot)) = self.tokens.remove(token)
            && other != role
        {
            match slot.call.send(client) {
                Ok(()) => return Paired::Called,
                // It has just given up.
                Err(back) => client = back,
            }
        }
        let (slot, ticket) = self.slot(Key::Token(*token));
        self.tokens.insert(*token, (role, slot));
        Paired::Waits(client, ticket)
    }

    /// Ends the waiting. A client who was sent in the same moment is given back.
    pub(super) fn leave(&mut self, mut ticket: Ticket<V>) -> Option<V> {
        match ticket.key {
            Key::Nameplate(nameplate) => {
                if self.nameplates.get(&nameplate).is_some_and(|slot| slot.id == ticket.id) {
                    self.nameplates.remove(&nameplate);
                }
            }
            Key::Token(token) => {
                if self.tokens.get(&token).is_some_and(|(_, slot)| slot.id == ticket.id) {
                    self.tokens.remove(&token);
                }
            }
        }
        ticket.called.close();
        ticket.called.try_recv().ok()
    }
}

/// A number below `most`, of a random one. With nine digits at most the bias is below 2^-34.
fn below(random: u64, most: u64) -> u64 {
    random % most
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of no pattern, the same every time.
    fn random() -> impl FnMut() -> Option<u64> {
        let mut state = 1u64;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Some(state >> 20)
        }
    }

    fn number(ticket: &Ticket<u8>) -> u32 {
        match ticket.key {
            Key::Nameplate(number) => number,
            Key::Token(_) => unreachable!(),
        }
    }

    #[test]
    fn small_nameplates_come_first_and_in_no_order() {
        let mut room = WaitingRoom::<u8>::new();
        let mut random = random();
        let tickets: Vec<_> = (0..1500).map(|_| room.open(&mut random).unwrap()).collect();
        let numbers: Vec<_> = tickets.iter().map(number).collect();
        assert!(numbers[..9].iter().all(|n| (1..10).contains(n)));
        assert!(numbers[9..99].iter().all(|n| (10..100).contains(n)));
        assert!(numbers[99..999].iter().all(|n| (100..1000).contains(n)));
        assert!(numbers[999..].iter().all(|n| (1000..10_000).contains(n)));
        assert!(!numbers[9..99].is_sorted());
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 1500);
        // The one that is given back is the only small one.
        let mut tickets = tickets;
        let back = tickets.remove(4);
        let freed = number(&back);
        assert!(room.leave(back).is_none());
        assert_eq!(number(&room.open(&mut random).unwrap()), freed);
    }

    #[test]
    fn no_randomness_no_nameplate() {
        assert!(WaitingRoom::<u8>::new().open(&mut || None).is_none());
    }

    #[test]
    fn a_nameplate_is_claimed_once() {
        let mut room = WaitingRoom::new();
        let mut ticket = room.open(&mut random()).unwrap();
        let nameplate = number(&ticket);
        assert_eq!(room.claim(nameplate + 1, 7), Err(7));
        assert_eq!(room.claim(nameplate, 8), Ok(()));
        assert_eq!(room.claim(nameplate, 9), Err(9));
        assert_eq!(ticket.called.try_recv(), Ok(8));
    }

    #[test]
    fn nobody_is_lost_who_comes_as_the_other_leaves() {
        let mut room = WaitingRoom::new();
        let ticket = room.open(&mut random()).unwrap();
        assert_eq!(room.claim(number(&ticket), 8), Ok(()));
        assert_eq!(room.leave(ticket), Some(8));

        let Paired::Waits(1, ticket) = room.pair(&[1; 32], Role::Initiator, 1) else {
            panic!()
        };
        drop(ticket.called);
        let Paired::Waits(2, _ticket) = room.pair(&[1; 32], Role::Responder, 2) else {
            panic!()
        };
    }

    #[test]
    fn who_leaves_takes_only_the_own_seat() {
        let mut room = WaitingRoom::new();
        let Paired::Waits(_, first) = room.pair(&[1; 32], Role::Initiator, 1) else {
            panic!()
        };
        // The same end again: the later connection counts.
        let Paired::Waits(_, mut second) = room.pair(&[1; 32], Role::Initiator, 2) else {
            panic!()
        };
        assert!(room.leave(first).is_none());
        assert!(matches!(room.pair(&[2; 32], Role::Responder, 3), Paired::Waits(..)));
        assert!(matches!(room.pair(&[1; 32], Role::Responder, 4), Paired::Called));
        assert_eq!(second.called.try_recv(), Ok(4));
    }
}
