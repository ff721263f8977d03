//! What contents mean: a message type and a payload.
//!
//! The type is a short id, one byte from 1 to 255, or a zero byte and twelve bytes of ASCII. Which ids mean what is a table,
//! [`MessageTypes`], that a network may replace. [`v1`] is the framing of messages before BIP324, for whoever carries them
//! from one to the other.

mod command;
mod types;
pub mod v1;

use alloc::vec::Vec;

pub use command::{COMMAND_LEN, Command};
pub use types::MessageTypes;

use crate::{CONTENTS_MAX, Error};

/// Bytes of a long message type: the zero, then the type.
pub const LONG_TYPE_LEN: usize = 1 + COMMAND_LEN;

/// A message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message<'a> {
    /// Its type.
    pub command: Command,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads contents. A type with a short id may come in its long form all the same.
    ///
    /// # Errors
    /// [`Error::MessageTooShort`], [`Error::UnknownShortId`], [`Error::CommandByte`]. As in Bitcoin Core, none of them ends
    /// the connection: the message is dropped.
    pub fn decode(types: &MessageTypes, contents: &'a [u8]) -> Result<Self, Error> {
        let short = Error::MessageTooShort { got: contents.len() };
        match contents.split_first() {
            None => Err(short),
            Some((0, rest)) => {
                let (command, payload) = rest.split_first_chunk::<COMMAND_LEN>().ok_or(short)?;
                let command = Command::from_wire(command)?;
                Ok(Message { command, payload })
            }
            Some((&id, payload)) => {
                let command = types.command(id).ok_or(Error::UnknownShortId { id })?;
                Ok(Message { command, payload })
            }
        }
    }

    /// Appends the message as contents: with its short id if the table has one, else with the long type.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] if it does not fit a packet; `contents` is then as it was.
    pub fn encode(&self, types: &MessageTypes, contents: &mut Vec<u8>) -> Result<(), Error> {
        let id = types.id(self.command);
        let head = if id.is_some() { 1 } else { LONG_TYPE_LEN };
        let got = self.payload.len().saturating_add(head);
        if got > CONTENTS_MAX {
            return Err(Error::ContentsTooLong {
                got,
                limit: CONTENTS_MAX,
            });
        }
        contents.reserve(got);
        match id {
            Some(id) => contents.push(id),
            None => {
                contents.push(0);
                contents.extend_from_slice(self.command.as_bytes());
            }
        }
        contents.extend_from_slice(self.payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(name: &str, payload: &'a [u8]) -> Message<'a> {
        Message {
            command: name.parse().unwrap(),
            payload,
        }
    }

    #[test]
    fn both_forms_are_read_and_the_short_one_is_written() {
        let types = MessageTypes::standard();
        let ping = message("ping", b"12345678");
        let mut contents = vec![0xff];
        ping.encode(&types, &mut contents).unwrap();
        assert_eq!(contents, b"\xff\x1212345678");
        assert_eq!(Message::decode(&types, &contents[1..]), Ok(ping));
        assert_eq!(Message::decode(&types, b"\0ping\0\0\0\0\0\0\0\x0012345678"), Ok(ping));
        let version = message("version", b"v");
        let mut contents = Vec::new();
        version.encode(&types, &mut contents).unwrap();
        assert_eq!(contents, b"\0version\0\0\0\0\0v");
        assert_eq!(Message::decode(&types, &contents), Ok(version));
        let mut long = Vec::new();
        ping.encode(&MessageTypes::empty(), &mut long).unwrap();
        assert_eq!(long, b"\0ping\0\0\0\0\0\0\0\x0012345678");
    }

    #[test]
    fn wrong_contents_are_refused_without_ending_anything() {
        let types = MessageTypes::standard();
        let refused = |contents: &[u8]| {
            let error = Message::decode(&types, contents).unwrap_err();
            assert!(!error.ends_connection(), "{error:?}");
            error
        };
        assert_eq!(refused(b""), Error::MessageTooShort { got: 0 });
        assert_eq!(refused(b"\0ping\0\0\0\0\0\0\0"), Error::MessageTooShort { got: 12 });
        for id in [29, 37, 128, 255] {
            assert_eq!(refused(&[id]), Error::UnknownShortId { id });
        }
        let wrong = refused(b"\0pi\0g\0\0\0\0\0\0\0\0");
        assert_eq!(wrong, Error::CommandByte { at: 3, got: b'g' });
        assert_eq!(
            refused(b"\0pi\x1fg\0\0\0\0\0\0\0\0"),
            Error::CommandByte { at: 2, got: 0x1f }
        );
        assert_eq!(
            refused(b"\0pi\x80g\0\0\0\0\0\0\0\0"),
            Error::CommandByte { at: 2, got: 0x80 }
        );
        assert!(Message::decode(&types, b"\0twelve bytes").is_ok());
        assert!(Message::decode(&types, b"\0\x7f\0\0\0\0\0\0\0\0\0\0\0").is_ok());
    }

    #[test]
    fn what_does_not_fit_a_packet_is_refused() {
        let types = MessageTypes::standard();
        let payload = vec![0; CONTENTS_MAX];
        let mut contents = vec![1];
        let got = CONTENTS_MAX + 1;
        let error = message("block", &payload).encode(&types, &mut contents);
        assert_eq!(
            error,
            Err(Error::ContentsTooLong {
                got,
                limit: CONTENTS_MAX
            })
        );
        assert_eq!(contents, [1]);
        message("block", &payload[1..]).encode(&types, &mut contents).unwrap();
        assert_eq!(contents.len(), 1 + CONTENTS_MAX);
        assert!(
            message("version", &payload[12..])
                .encode(&types, &mut contents)
                .is_err()
        );
        assert!(message("version", &payload[13..]).encode(&types, &mut contents).is_ok());
    }
}
