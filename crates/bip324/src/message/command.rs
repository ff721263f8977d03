//! Message types by name.

use core::fmt;
use core::str::FromStr;

use crate::Error;

/// Bytes of a message type on the wire.
pub const COMMAND_LEN: usize = 12;

/// The name of a message type, padded with zeros.
///
/// Always ASCII from 0x20 to 0x7f, then zeros only. A name that came from a peer may be empty.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Command([u8; COMMAND_LEN]);

impl Command {
    /// Reads the twelve bytes of a long type.
    ///
    /// # Errors
    /// [`Error::CommandByte`] for a byte outside 0x20 to 0x7f, and for one after the first zero.
    pub fn from_wire(bytes: &[u8; COMMAND_LEN]) -> Result<Self, Error> {
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(COMMAND_LEN);
        let wrong = |(at, byte): (usize, &u8)| {
            let fits = if at < len {
                matches!(*byte, 0x20..=0x7f)
            } else {
                *byte == 0
            };
            (!fits).then_some((at, *byte))
        };
        match bytes.iter().enumerate().find_map(wrong) {
            Some((at, got)) => Err(Error::CommandByte { at, got }),
            None => Ok(Command(*bytes)),
        }
    }

    /// The twelve bytes.
    pub const fn as_bytes(&self) -> &[u8; COMMAND_LEN] {
        &self.0
    }

    /// The name without its padding.
    pub fn name(&self) -> &str {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(COMMAND_LEN);
        // ASCII by construction.
        core::str::from_utf8(&self.0[..len]).unwrap_or_default()
    }
}

impl FromStr for Command {
    type Err = Error;

    /// # Errors
    /// [`Error::Command`] unless there are 1 to 12 characters from 0x20 to 0x7e.
    fn from_str(name: &str) -> Result<Self, Error> {
        let printable = name.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
        if name.is_empty() || name.len() > COMMAND_LEN || !printable {
            return Err(Error::Command);
        }
        let mut bytes = [0; COMMAND_LEN];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Command(bytes))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({:?})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_both_ways() {
        for name in ["a", "ping", "twelve chars"] {
            let command: Command = name.parse().unwrap();
            assert_eq!(command.name(), name);
            assert_eq!(Command::from_wire(command.as_bytes()), Ok(command));
        }
        for wrong in ["", "thirteen char", "pi\0g", "p\u{7f}", "pïng", "tab\t"] {
            assert_eq!(wrong.parse::<Command>(), Err(Error::Command), "{wrong:?}");
        }
        assert_eq!(Command::from_wire(&[0; 12]).unwrap().name(), "");
    }
}
