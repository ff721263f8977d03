//! The secret that both hosts have.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sealway_session::Zeroizing;

use crate::run::NoEntropy;

/// Fewest and most bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

/// Random bytes of one that is made here: each is two digits.
const MADE: usize = 16;

/// The secret that both hosts have. Wiped when dropped, and never printed but by [`Token::reveal`].
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// The variable of the environment that has it, where no file does. No program that is started here is given it.
    pub const VARIABLE: &str = "SEALWAY_LAB_TOKEN";

    /// A new one: 32 hexadecimal digits, 128 bits.
    ///
    /// # Errors
    /// [`NoEntropy`] when the system gives no random bytes.
    pub fn generate() -> Result<Token, NoEntropy> {
        let mut bytes = Zeroizing::new([0; MADE]);
        for half in bytes.chunks_exact_mut(size_of::<u64>()) {
            half.copy_from_slice(&crate::run::seed()?.to_le_bytes());
        }
        // Room for all of it from the start: a string that grows leaves its beginning behind.
        let mut text = Zeroizing::new(String::with_capacity(2 * MADE));
        for byte in bytes.iter() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Token(text))
    }

    /// One that was given, without spaces and line ends around it.
    ///
    /// # Errors
    /// [`TokenError`] unless it has 16 to 256 bytes, all of them visible ASCII.
    pub fn parse(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        if !LENGTHS.contains(&text.len()) {
            return Err(TokenError::Length { got: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Token(Zeroizing::new(text.to_owned())))
    }

    /// The one in a file that nobody else may read.
    ///
    /// # Errors
    /// [`TokenError`]; as [`Token::parse`] too.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let file = File::open(path).map_err(TokenError::File)?;
        if file.metadata().map_err(TokenError::File)?.mode() & 0o077 != 0 {
            return Err(TokenError::Exposed);
        }
        let most = LENGTHS.end() + 16;
        let mut text = Zeroizing::new(String::with_capacity(most));
        let limit = u64::try_from(most).unwrap_or(u64::MAX);
        file.take(limit).read_to_string(&mut text).map_err(TokenError::File)?;
        Token::parse(&text)
    }

    /// The text, to be shown once to whoever brings it to the other host.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.as_bytes().to_vec())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Why there is no token.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// Too short or too long.
    Length {
        /// Its bytes.
        got: usize,
    },
    /// There is a space, or what is no ASCII, in it.
    Characters,
    /// The file may be read by others.
    Exposed,
    /// The file cannot be read.
    File(io::Error),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Length { got } => {
                let (least, most) = LENGTHS.into_inner();
                write!(f, "a token has {least} to {most} characters, not {got}")
            }
            TokenError::Characters => f.write_str("a token is made of visible ASCII characters, without spaces"),
            TokenError::Exposed => f.write_str("others may read the file of the token; `chmod 600` it"),
            TokenError::File(error) => write!(f, "cannot read the file of the token: {error}"),
        }
    }
}

impl std::error::Error for TokenError {}
