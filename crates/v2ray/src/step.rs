//! What a look at the bytes so far can give, and the cursor the parsers look with.

/// What a parser made of the bytes it was shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step<T> {
    /// The message is complete.
    Done {
        /// What it says.
        value: T,
        /// How many of the bytes shown it took. Those after it belong to whatever comes next.
        used: usize,
    },
    /// It is not complete: show the same bytes again with at least this many more behind them. Never 0.
    More(usize),
}

impl<T> Step<T> {
    /// The same step with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Step::Done { value, used } => Step::Done { value: f(value), used },
            Step::More(n) => Step::More(n),
        }
    }

    /// The value, if the message is complete.
    pub fn done(self) -> Option<T> {
        match self {
            Step::Done { value, .. } => Some(value),
            Step::More(_) => None,
        }
    }
}

/// Why a read from a [`Cursor`] stopped.
pub(crate) enum Stop {
    /// This many more bytes are needed, at least.
    More(usize),
    /// The bytes are wrong.
    Failed(crate::Error),
}

impl From<crate::Error> for Stop {
    fn from(error: crate::Error) -> Self {
        Stop::Failed(error)
    }
}

/// Reads fields off the front of bytes that may not all be there yet.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Stop> {
        let left = &self.bytes[self.at..];
        let Some(taken) = left.get(..n) else {
            return Err(Stop::More(n - left.len()));
        };
        self.at += n;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Stop> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Stop> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// How many bytes have been read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }
}

/// Runs a parser over `bytes` and turns a want of bytes into [`Step::More`].
pub(crate) fn parse<'a, T>(
    bytes: &'a [u8],
    parser: impl FnOnce(&mut Cursor<'a>) -> Result<T, Stop>,
) -> Result<Step<T>, crate::Error> {
    let mut cursor = Cursor::new(bytes);
    match parser(&mut cursor) {
        Ok(value) => Ok(Step::Done {
            value,
            used: cursor.position(),
        }),
        Err(Stop::More(n)) => Ok(Step::More(n)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// What a whole message says. Every beginning of it has to ask for more, and not for too much, and what follows it makes no
/// difference.
#[cfg(test)]
pub(crate) fn whole<T: std::fmt::Debug>(message: &[u8], parse: impl Fn(&[u8]) -> Result<Step<T>, crate::Error>) -> T {
    let len = message.len();
    for n in 0..len {
        match parse(&message[..n]) {
            Ok(Step::More(more)) => assert!(more > 0 && n + more <= len, "{more} more than {n} of {len} bytes"),
            other => panic!("{n} of {len} bytes gave {other:?}"),
        }
    }
    match parse(&[message, b"\0what follows"].concat()) {
        Ok(Step::Done { value, used }) if used == len => value,
        other => panic!("{len} bytes gave {other:?}"),
    }
}
