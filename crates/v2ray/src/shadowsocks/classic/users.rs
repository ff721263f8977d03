//! Who may use an inbound of 2017.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use sealway_aead::{OpeningKey, Suite};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::packet;
use crate::shadowsocks::stream::unauthentic;
use crate::shadowsocks::{Key, MAX_SALT};
use crate::vmess::Profile;
use crate::{Destination, Error, Protocol};

/// How many users are tried first, because they were seen lately.
const RECENT: usize = 16;
/// The longest salt, and the first length. Behind a shorter salt lie a length, and an address that is no shorter than what is
/// missing.
const NEED: usize = MAX_SALT + 2 + Suite::TAG_LEN;
/// Marks a free place among them.
const NOBODY: u32 = u32::MAX;

/// The users of an inbound, each with a key, and perhaps a method, of its own.
///
/// Nothing in a request says whose it is: a key is derived for one user after the other, a microsecond each, until the first
/// length opens. Users who were seen lately are tried first. [`Search`] does that in steps, so that nobody else has to wait for
/// it, and every user is tried at most once for a request, however its bytes come.
///
/// A user keeps his number for as long as he is there, so that searches go on while others come and go.
pub struct Users<T> {
    entries: Vec<Option<(Key, T)>>,
    /// Places of those who went.
    free: Vec<usize>,
    /// Where each stands, by method and key.
    numbers: HashMap<[u8; 32], usize>,
    sum: [u8; 32],
    recent: [AtomicU32; RECENT],
    /// Where the next one goes among the recent ones.
    turn: AtomicU32,
}

/// A user found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a, T> {
    /// The number of the user, for [`Users::user`].
    pub number: usize,
    /// What was stored for the user.
    pub user: &'a T,
    /// The user's key.
    pub key: &'a Key,
}

impl<T> Users<T> {
    /// No users yet.
    pub fn new() -> Self {
        Users {
            entries: Vec::new(),
            free: Vec::new(),
            numbers: HashMap::new(),
            sum: [0; 32],
            recent: [const { AtomicU32::new(NOBODY) }; RECENT],
            turn: AtomicU32::new(0),
        }
    }

    /// The users of a list.
    ///
    /// # Errors
    /// [`Error::DuplicatePassword`] if two of one method have the same key: the second could never be found.
    pub fn from_list(list: impl IntoIterator<Item = (Key, T)>) -> Result<Self, Error> {
        let mut users = Self::new();
        for (key, user) in list {
            users.insert(key, user)?;
        }
        Ok(users)
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::DuplicatePassword`] if one of the same method has the key.
    pub fn insert(&mut self, key: Key, user: T) -> Result<(), Error> {
        let digest = digest(&key);
        if self.numbers.contains_key(&digest) {
            return Err(Error::DuplicatePassword);
        }
        let one = Some((key, user));
        let number = match self.free.pop() {
            Some(number) => {
                self.entries[number] = one;
                number
            }
            None => {
                self.entries.push(one);
                self.entries.len() - 1
            }
        };
        self.numbers.insert(digest, number);
        self.toggle(digest);
        Ok(())
    }

    /// Removes a user.
    pub fn remove(&mut self, key: &Key) -> Option<T> {
        let digest = digest(key);
        let number = self.numbers.remove(&digest)?;
        let (_, user) = self.entries.get_mut(number)?.take()?;
        self.free.push(number);
        self.toggle(digest);
        Some(user)
    }

    fn toggle(&mut self, digest: [u8; 32]) {
        self.sum.iter_mut().zip(digest).for_each(|(sum, byte)| *sum ^= byte);
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// How the inbound treats those it refuses.
    pub fn drain_profile(&self) -> Profile {
        Profile::new(self.sum)
    }

    /// Bytes that must have come before anyone is looked for, whoever is there. No request is shorter.
    pub const fn need(&self) -> usize {
        NEED
    }

    /// A user by number.
    pub fn user(&self, number: usize) -> Option<Found<'_, T>> {
        let (key, user) = self.entries.get(number)?.as_ref()?;
        Some(Found { number, user, key })
    }

    /// Remembers that a user was seen.
    fn note(&self, number: usize) {
        let Ok(number) = u32::try_from(number) else { return };
        if self
            .recent
            .iter()
            .any(|recent| recent.load(Ordering::Relaxed) == number)
        {
            return;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        self.recent[turn % RECENT].store(number, Ordering::Relaxed);
    }

    /// Opens a datagram with the key of user `number`, into `plain`.
    ///
    /// # Errors
    /// As [`packet::open`]; [`Error::UnknownUser`] if there is no such user.
    pub fn open_packet(
        &self,
        number: usize,
        datagram: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(Destination, usize), Error> {
        let found = self.user(number).ok_or(UNKNOWN)?;
        let opened = packet::open(found.key, datagram, plain)?;
        self.note(number);
        Ok(opened)
    }
}

const UNKNOWN: Error = Protocol::Shadowsocks.unknown_user();

/// A search for whose a request or a datagram is, in steps.
#[derive(Debug)]
pub struct Search {
    recent: Vec<u32>,
    /// How many of the recent ones, and then of all, were tried.
    tried: usize,
    at: usize,
}

impl Search {
    /// Begins to search.
    pub fn new<T>(users: &Users<T>) -> Self {
        let all = users.recent.iter().map(|recent| recent.load(Ordering::Relaxed));
        Search {
            recent: all.filter(|number| *number != NOBODY).collect(),
            tried: 0,
            at: 0,
        }
    }

    /// Keys that were tried so far.
    pub fn tried(&self) -> usize {
        self.tried
    }

    /// How many users are tried first, because they were seen lately.
    pub fn recent(&self) -> usize {
        self.recent.len()
    }

    /// The number of the user to try next.
    fn next<T>(&mut self, users: &Users<T>) -> Option<usize> {
        loop {
            let at = self.at;
            self.at += 1;
            let number = match self.recent.get(at) {
                Some(number) => *number as usize,
                None => {
                    let number = at - self.recent.len();
                    if number >= users.entries.len() {
                        return None;
                    }
                    if self.recent.contains(&(number as u32)) {
                        continue;
                    }
                    number
                }
            };
            if users.user(number).is_none() {
                continue;
            }
            self.tried += 1;
            return Some(number);
        }
    }

    /// Tries at most `most` users on the first [`Users::need`] bytes of a stream. `None`: there are more to try.
    ///
    /// # Errors
    /// [`Error::UnknownUser`] when all were tried, and for fewer bytes.
    pub fn stream<'a, T>(
        &mut self,
        users: &'a Users<T>,
        bytes: &[u8],
        most: usize,
    ) -> Result<Option<Found<'a, T>>, Error> {
        if bytes.len() < NEED {
            return Err(UNKNOWN);
        }
        for _ in 0..most {
            let number = self.next(users).ok_or(UNKNOWN)?;
            let found = users.user(number).ok_or(UNKNOWN)?;
            if opens(found.key, bytes)? {
                users.note(number);
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Tries at most `most` users on a datagram, and opens it into `plain`. `None`: there are more to try.
    ///
    /// # Errors
    /// [`Error::UnknownUser`] when all were tried; what [`packet::open`] says of a datagram that its user has sealed.
    pub fn packet<T>(
        &mut self,
        users: &Users<T>,
        datagram: &[u8],
        plain: &mut Vec<u8>,
        most: usize,
    ) -> Result<Option<(usize, Destination, usize)>, Error> {
        for _ in 0..most {
            let number = self.next(users).ok_or(UNKNOWN)?;
            match users.open_packet(number, datagram, plain) {
                Ok((to, at)) => return Ok(Some((number, to, at))),
                Err(Error::Unauthentic { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// What tells keys of all methods apart.
fn digest(key: &Key) -> [u8; 32] {
    Sha256::new()
        .chain_update("sealway shadowsocks drain")
        .chain_update(key.method().name())
        .chain_update(key.as_bytes())
        .finalize()
        .into()
}

impl<T> Default for Users<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the first length of a stream opens with a key.
fn opens(key: &Key, bytes: &[u8]) -> Result<bool, Error> {
    let method = key.method();
    let mut salt = [0; MAX_SALT];
    let salt = &mut salt[..method.salt_len()];
    let (Some(given), Some(sealed)) = (
        bytes.get(..salt.len()),
        bytes.get(salt.len()..salt.len() + 2 + Suite::TAG_LEN),
    ) else {
        return Err(UNKNOWN);
    };
    salt.copy_from_slice(given);
    let opening = OpeningKey::new(method.suite(), key.subkey(salt).as_ref())?;
    let mut len = Zeroizing::new([0; 2]);
    let nonce = [0; Suite::MAX_NONCE_LEN];
    match opening.open_to(&nonce[..method.suite().nonce_len()], &[], sealed, &mut len[..]) {
        Ok(()) => Ok(true),
        Err(error) => match unauthentic(error) {
            Error::Unauthentic { .. } => Ok(false),
            error => Err(error),
        },
    }
}
