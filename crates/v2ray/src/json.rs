//! A reader of JSON with comments that knows the place of every key and value.
//!
//! Written here because no kept library has all that these files need: `#` comments, the place of keys as well as of
//! values, text that is not quite UTF-8 in old comments, repeated keys, and a bound on depth. The grammar is RFC 8259
//! and what Go's decoder makes of it: a lone surrogate escape and a byte that is not UTF-8 become U+FFFD.

use crate::problem::Position;

/// Most bytes one file may have. A configuration of 10,000 users has about 2 MiB.
pub(crate) const MAX_BYTES: usize = 32 << 20;

/// How deep arrays and objects may nest. Real files stay below 12.
pub(crate) const MAX_DEPTH: usize = 64;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) at: Position,
    pub(crate) data: Data,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    /// The number as it was written: whether it fits is for the key to say.
    Number(Box<str>),
    String(String),
    Array(Vec<Value>),
    Object(Vec<Member>),
}

/// A key of an object, in the order of the file, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) at: Position,
    pub(crate) value: Value,
}

impl Value {
    /// `{}`, as if it stood at a place.
    pub(crate) fn empty_object(at: Position) -> Self {
        Value {
            at,
            data: Data::Object(Vec::new()),
        }
    }

    /// The article and name of the type, for messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::String(_) => "a string",
            Data::Array(_) => "an array",
            Data::Object(_) => "an object",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.data == Data::Null
    }
}

/// The members of an object. Other values have none.
pub(crate) fn members(value: &Value) -> &[Member] {
    match &value.data {
        Data::Object(members) => members,
        _ => &[],
    }
}

/// Why a text could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SyntaxError {
    pub(crate) at: Position,
    pub(crate) text: String,
    pub(crate) hint: &'static str,
}

/// A document, and where bytes that are not UTF-8 stood inside strings.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    pub(crate) not_utf8: Vec<Position>,
}

/// Reads the one document in `bytes`. `file` goes into every position.
pub(crate) fn read(bytes: &[u8], file: u16) -> Result<Document, SyntaxError> {
    let mut reader = Reader::new(bytes, file);
    if bytes.len() > MAX_BYTES {
        return Err(reader.fault(
            format!("the file has {} bytes; at most {MAX_BYTES} are read", bytes.len()),
            "",
        ));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(reader.fault("the file is UTF-16".into(), "save it as UTF-8"));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        reader.next += 3;
        reader.column_from = 3;
    }
    reader.skip_space()?;
    if reader.peek().is_none() {
        return Err(reader.fault("the file is empty".into(), ""));
    }
    let value = reader.value(0)?;
    reader.skip_space()?;
    if reader.peek().is_some() {
        return Err(reader.fault(
            "there is more text after the end of the configuration".into(),
            "look for a brace too many before it; a file holds one configuration",
        ));
    }
    Ok(Document {
        value,
        not_utf8: reader.not_utf8,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    next: usize,
    file: u16,
    line: u32,
    /// Column of the byte at `column_from`. Columns are counted on from there, so that a long line costs no more.
    column: u32,
    column_from: usize,
    not_utf8: Vec<Position>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], file: u16) -> Self {
        Reader {
            bytes,
            next: 0,
            file,
            line: 1,
            column: 1,
            column_from: 0,
            not_utf8: Vec::new(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.next).copied()
    }

    /// The place of the next byte.
    fn here(&mut self) -> Position {
        let passed = self.bytes.get(self.column_from..self.next).unwrap_or_default();
        // Bytes that continue a character of UTF-8 are not counted.
        let characters = passed.iter().filter(|b| **b & 0xc0 != 0x80).count();
        self.column = self
            .column
            .saturating_add(u32::try_from(characters).unwrap_or(u32::MAX));
        self.column_from = self.next;
        Position {
            file: self.file,
            line: self.line,
            column: self.column,
        }
    }

    fn fault(&mut self, text: String, hint: &'static str) -> SyntaxError {
        SyntaxError {
            at: self.here(),
            text,
            hint,
        }
    }

    /// Passes a byte that may be the end of a line.
    fn bump(&mut self) {
        let newline = self.peek() == Some(b'\n');
        self.next += 1;
        if newline {
            self.line = self.line.saturating_add(1);
            self.column = 1;
            self.column_from = self.next;
        }
    }

    /// Passes white space and comments.
    fn skip_space(&mut self) -> Result<(), SyntaxError> {
        loop {
            match (self.peek(), self.bytes.get(self.next + 1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => self.bump(),
                (Some(b'#'), _) | (Some(b'/'), Some(b'/')) => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.next += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    let at = self.here();
                    self.next += 2;
                    while !self.bytes.get(self.next..).is_some_and(|rest| rest.starts_with(b"*/")) {
                        if self.peek().is_none() {
                            return Err(SyntaxError {
                                at,
                                text: "this comment has no end".into(),
                                hint: "close it with */",
                            });
                        }
                        self.bump();
                    }
                    self.next += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        let at = self.here();
        let data = match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                return Err(self.fault(
                    format!("more than {MAX_DEPTH} objects and arrays inside each other"),
                    "",
                ));
            }
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b'"') => Data::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Data::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Value { at, data })
    }

    fn unexpected(&mut self, wanted: &str) -> SyntaxError {
        let (got, hint) = match self.peek() {
            None => (
                "the end of the file".into(),
                "look for a brace, bracket or quote that is not closed",
            ),
            Some(b'\'') => ("\"'\"".into(), "strings stand in double quotes"),
            Some(b @ (b'}' | b']')) => (format!("\"{}\"", char::from(b)), "look for a comma too many before it"),
            Some(b @ 0x20..=0x7e) => (format!("\"{}\"", char::from(b)), ""),
            Some(b) => (format!("the byte {b:#04x}"), ""),
        };
        self.fault(format!("{wanted} is expected here, not {got}"), hint)
    }

    fn object(&mut self, depth: usize) -> Result<Data, SyntaxError> {
        let mut members = Vec::new();
        self.next += 1;
        self.skip_space()?;
        if self.peek() == Some(b'}') {
            self.next += 1;
            return Ok(Data::Object(members));
        }
        loop {
            self.skip_space()?;
            let at = self.here();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_space()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("a colon"));
            }
            self.next += 1;
            self.skip_space()?;
            let value = self.value(depth)?;
            members.push(Member { key, at, value });
            self.skip_space()?;
            match self.peek() {
                Some(b',') => self.next += 1,
                Some(b'}') => {
                    self.next += 1;
                    return Ok(Data::Object(members));
                }
                _ => return Err(self.unexpected("a comma or a closing brace")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Data, SyntaxError> {
        let mut values = Vec::new();
        self.next += 1;
        self.skip_space()?;
        if self.peek() == Some(b']') {
            self.next += 1;
            return Ok(Data::Array(values));
        }
        loop {
            self.skip_space()?;
            values.push(self.value(depth)?);
            self.skip_space()?;
            match self.peek() {
                Some(b',') => self.next += 1,
                Some(b']') => {
                    self.next += 1;
                    return Ok(Data::Array(values));
                }
                _ => return Err(self.unexpected("a comma or a closing bracket")),
            }
        }
    }

    fn word(&mut self) -> Result<Data, SyntaxError> {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        let len = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
            .count();
        let data = match rest.get(..len) {
            Some(b"true") => Data::Bool(true),
            Some(b"false") => Data::Bool(false),
            Some(b"null") => Data::Null,
            word => {
                let word: String = String::from_utf8_lossy(word.unwrap_or_default())
                    .chars()
                    .take(40)
                    .collect();
                return Err(self.fault(format!("{word} is no JSON value"), "strings stand in double quotes"));
            }
        };
        self.next += len;
        Ok(data)
    }

    fn number(&mut self) -> Result<Box<str>, SyntaxError> {
        let rest = self.bytes.get(self.next..).unwrap_or_default();
        let len = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            .count();
        let text = std::str::from_utf8(rest.get(..len).unwrap_or_default()).unwrap_or_default();
        if !is_number(text) {
            let text: String = text.chars().take(40).collect();
            return Err(self.fault(format!("{text} is no JSON number"), ""));
        }
        self.next += len;
        Ok(text.into())
    }

    /// Reads a string; the next byte is its opening quote.
    fn string(&mut self) -> Result<String, SyntaxError> {
        let opened = self.here();
        self.next += 1;
        let mut out = Vec::new();
        loop {
            let from = self.next;
            while self.peek().is_some_and(|b| b >= 0x20 && b != b'"' && b != b'\\') {
                self.next += 1;
            }
            out.extend_from_slice(self.bytes.get(from..self.next).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.next += 1;
                    break;
                }
                Some(b'\\') => self.escape(&mut out)?,
                None | Some(b'\n' | b'\r') => {
                    return Err(SyntaxError {
                        at: opened,
                        text: "this string has no end on its line".into(),
                        hint: "close it with a double quote",
                    });
                }
                Some(b) => {
                    return Err(self.fault(
                        format!("a string holds the control byte {b:#04x}"),
                        "write \\t or \\u00XX",
                    ));
                }
            }
        }
        match String::from_utf8(out) {
            Ok(text) => Ok(text),
            Err(error) => {
                self.not_utf8.push(opened);
                Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let byte = match self.bytes.get(self.next + 1) {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b @ (b'"' | b'\\' | b'/')) => *b,
            Some(b'u') => return self.unicode_escape(out),
            _ => {
                return Err(self.fault(
                    "a backslash begins no escape here".into(),
                    "write \\\\ for a backslash, or / in a path",
                ));
            }
        };
        out.push(byte);
        self.next += 2;
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(first) = self.unit() else {
            return Err(self.fault("\\u wants four hexadecimal digits".into(), ""));
        };
        self.next += 6;
        let mut code = u32::from(first);
        if (0xd800..0xdc00).contains(&first)
            && let Some(second) = self.unit().filter(|u| (0xdc00..0xe000).contains(u))
        {
            self.next += 6;
            code = 0x1_0000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
        }
        // Half of a pair alone is no character.
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// The code unit of the `\uXXXX` that begins at the next byte, if one does.
    fn unit(&self) -> Option<u16> {
        let escape = self.bytes.get(self.next..self.next + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }
}

/// Whether a text is a number of RFC 8259.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let n = digits(fraction);
        if n == 0 {
            return false;
        }
        rest = &fraction[n..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let n = digits(exponent);
        if n == 0 {
            return false;
        }
        rest = &exponent[n..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests;
