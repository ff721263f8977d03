//! Fields of protobuf messages.

/// Longest number.
pub(super) const MAX_VARINT: usize = 10;

/// Bytes that were read, or how many are missing at least.
pub(super) enum Read<T> {
    Done(T, usize),
    More,
    Wrong,
}

/// A number at the beginning of `bytes`.
pub(super) fn varint(bytes: &[u8]) -> Read<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        let part = u64::from(byte & 0x7f);
        // The tenth byte has one bit left.
        if i == MAX_VARINT - 1 && part > 1 {
            return Read::Wrong;
        }
        value |= part << (7 * i);
        if byte < 0x80 {
            return Read::Done(value, i + 1);
        }
    }
    if bytes.len() < MAX_VARINT {
        Read::More
    } else {
        Read::Wrong
    }
}

/// A field of a message that is there in full.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    /// The bytes of a field that has bytes.
    pub(super) bytes: Option<&'a [u8]>,
    /// The number of a field that has one.
    pub(super) value: u64,
}

/// The fields of a message; `None` where it is broken, and then no more.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Fields(message)
    }

    fn number(&mut self) -> Option<u64> {
        let Read::Done(value, used) = varint(self.0) else {
            return None;
        };
        self.0 = &self.0[used..];
        Some(value)
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let tag = self.number()?;
        let mut field = Field {
            number: tag >> 3,
            bytes: None,
            value: 0,
        };
        match tag & 7 {
            0 => field.value = self.number()?,
            1 => {
                self.take(8)?;
            }
            2 => {
                let len = self.number()?;
                field.bytes = Some(self.take(len)?);
            }
            5 => {
                self.take(4)?;
            }
            _ => return None,
        }
        (field.number > 0).then_some(field)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}
