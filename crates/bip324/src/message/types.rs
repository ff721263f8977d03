//! Which short id means which message.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::Error;

use super::Command;

/// The ids of BIP324, from 1 on.
const STANDARD: [&str; 28] = [
    "addr",
    "block",
    "blocktxn",
    "cmpctblock",
    "feefilter",
    "filteradd",
    "filterclear",
    "filterload",
    "getblocks",
    "getblocktxn",
    "getdata",
    "getheaders",
    "headers",
    "inv",
    "mempool",
    "merkleblock",
    "notfound",
    "ping",
    "pong",
    "sendcmpct",
    "tx",
    "getcfilters",
    "cfilter",
    "getcfheaders",
    "cfheaders",
    "getcfcheckpt",
    "cfcheckpt",
    "addrv2",
];

/// The ids of drafts, from 29 on: those of BIP183, then that of BIP434.
const DRAFTS: [&str; 9] = [
    "uproof",
    "getuproof",
    "uttls",
    "getuttls",
    "usummary",
    "utreexotx",
    "uroot",
    "geturoot",
    "feature",
];

/// A table of short ids.
///
/// Both ends of a connection should have the same. An end that lacks an id drops such messages; one that has more than the
/// other must not send them.
#[derive(Clone)]
pub struct MessageTypes {
    by_id: Box<[Option<Command>; 256]>,
    /// Sorted by name.
    by_name: Vec<(Command, u8)>,
}

impl MessageTypes {
    /// No ids: every type goes out in its long form.
    pub fn empty() -> Self {
        MessageTypes {
            by_id: Box::new([None; 256]),
            by_name: Vec::new(),
        }
    }

    /// The 28 ids of BIP324, which is what Bitcoin Core has.
    pub fn standard() -> Self {
        let mut types = Self::empty();
        types.insert_from(1, &STANDARD);
        types
    }

    /// Those and the ids 29 to 37, which drafts of other BIPs claim (the BIPs repository, bip-0324/message_type_ids.md).
    pub fn with_drafts() -> Self {
        let mut types = Self::standard();
        types.insert_from(29, &DRAFTS);
        types
    }

    fn insert_from(&mut self, first: u8, names: &[&str]) {
        for (id, name) in (first..).zip(names) {
            // The tables above hold names only; a test looks that none is lost.
            if let Ok(command) = name.parse() {
                let _ = self.insert(id, command);
            }
        }
    }

    /// Gives a type an id, in place of the one it had and of the type that had the id. Networks that have types of their own
    /// use ids from 128 on.
    ///
    /// # Errors
    /// [`Error::ReservedShortId`] for id 0.
    pub fn insert(&mut self, id: u8, command: Command) -> Result<(), Error> {
        if id == 0 {
            return Err(Error::ReservedShortId);
        }
        self.remove(id);
        if let Some(old) = self.id(command) {
            self.remove(old);
        }
        self.by_id[usize::from(id)] = Some(command);
        let place = self.by_name.partition_point(|(known, _)| *known < command);
        self.by_name.insert(place, (command, id));
        Ok(())
    }

    /// Takes an id away; gives the type that had it.
    pub fn remove(&mut self, id: u8) -> Option<Command> {
        let command = self.by_id[usize::from(id)].take()?;
        self.by_name.retain(|(_, known)| *known != id);
        Some(command)
    }

    /// The type with an id.
    #[inline]
    pub fn command(&self, id: u8) -> Option<Command> {
        self.by_id[usize::from(id)]
    }

    /// The id of a type.
    #[inline]
    pub fn id(&self, command: Command) -> Option<u8> {
        let place = self.by_name.binary_search_by(|(known, _)| known.cmp(&command)).ok()?;
        self.by_name.get(place).map(|(_, id)| *id)
    }

    /// All ids with their types, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Command)> {
        (0..=u8::MAX).filter_map(|id| Some((id, self.command(id)?)))
    }
}

impl Default for MessageTypes {
    fn default() -> Self {
        Self::standard()
    }
}

impl fmt::Debug for MessageTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str) -> Command {
        name.parse().unwrap()
    }

    #[test]
    fn the_tables_are_whole() {
        let types = MessageTypes::with_drafts();
        assert_eq!(types.iter().count(), 37);
        assert_eq!(MessageTypes::standard().iter().count(), 28);
        for (id, command) in types.iter() {
            assert_eq!(types.id(command), Some(id));
        }
        for (id, name) in [
            (1, "addr"),
            (14, "inv"),
            (18, "ping"),
            (21, "tx"),
            (28, "addrv2"),
            (29, "uproof"),
            (37, "feature"),
        ] {
            assert_eq!(types.command(id), Some(command(name)), "{id}");
        }
        for name in [
            "version",
            "verack",
            "wtxidrelay",
            "sendaddrv2",
            "sendheaders",
            "sendtxrcncl",
        ] {
            assert_eq!(types.id(command(name)), None, "{name}");
        }
    }

    #[test]
    fn a_network_may_have_its_own() {
        let mut types = MessageTypes::standard();
        types.insert(128, command("dsq")).unwrap();
        assert_eq!(types.id(command("dsq")), Some(128));
        // Another id for a type that has one, and another type for an id.
        types.insert(200, command("ping")).unwrap();
        assert_eq!((types.command(18), types.id(command("ping"))), (None, Some(200)));
        types.insert(200, command("pang")).unwrap();
        assert_eq!(
            (types.id(command("ping")), types.id(command("pang"))),
            (None, Some(200))
        );
        assert_eq!(types.remove(200), Some(command("pang")));
        assert_eq!(types.remove(200), None);
        assert_eq!(types.insert(0, command("ping")), Err(Error::ReservedShortId));
        assert_eq!(types.iter().count(), 28);
    }
}
