//! Just enough of a JSON reader for what `cargo metadata` prints.

/// A JSON value. Numbers stay text: nothing here computes with them.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one value that makes up the whole text.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader {
            text: text.as_bytes(),
            at: 0,
        };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == reader.text.len() {
            Ok(value)
        } else {
            Err(reader.error("text after the value"))
        }
    }

    /// The value of a key; null when there is none or this is no object.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(entries) => entries.iter().find(|(k, _)| k == key).map_or(&Json::Null, |(_, v)| v),
            _ => &Json::Null,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }
}

const MAX_DEPTH: u32 = 64;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, what: &str) -> String {
        format!("JSON, byte {}: {what}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.text[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.error(&format!("expected `{word}`")))
    }

    fn value(&mut self, depth: u32) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b't') => self.expect("true").map(|()| Json::Bool(true)),
            Some(b'f') => self.expect("false").map(|()| Json::Bool(false)),
            Some(b'n') => self.expect("null").map(|()| Json::Null),
            Some(b'-' | b'0'..=b'9') => Ok(self.number()),
            _ => Err(self.error("expected a value")),
        }
    }

    fn number(&mut self) -> Json {
        let start = self.at;
        while self.peek().is_some_and(|b| b"+-.eE0123456789".contains(&b)) {
            self.at += 1;
        }
        Json::Number(String::from_utf8_lossy(&self.text[start..self.at]).into_owned())
    }

    fn list(&mut self, depth: u32) -> Result<Json, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.expect("]")?;
                return Ok(Json::List(items));
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Json, String> {
        self.expect("{")?;
        let mut entries = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(entries));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.expect(":")?;
            entries.push((key, self.value(depth + 1)?));
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.expect("}")?;
                return Ok(Json::Object(entries));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect("\"")?;
        let mut bytes = Vec::new();
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error("a string without an end"));
            };
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(bytes).map_err(|_| self.error("a string that is not UTF-8")),
                b'\\' => {
                    let escaped = self.escape()?;
                    bytes.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => bytes.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let Some(byte) = self.peek() else {
            return Err(self.error("a string without an end"));
        };
        self.at += 1;
        Ok(match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let high = self.hex4()?;
                let code = if (0xd800..0xdc00).contains(&high) {
                    self.expect("\\u")?;
                    0x10000 + ((high - 0xd800) << 10) + (self.hex4()?.wrapping_sub(0xdc00) & 0x3ff)
                } else {
                    high
                };
                char::from_u32(code).ok_or_else(|| self.error("an escape that is no character"))?
            }
            b'"' | b'\\' | b'/' => char::from(byte),
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .and_then(|d| std::str::from_utf8(d).ok());
        let code = digits
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .ok_or_else(|| self.error("a bad escape"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Json;

    #[test]
    fn reads_every_kind_of_value() {
        let value =
            Json::parse(r#" {"a":[1,-2.5e3,"x\n\u00e9\ud83d\ude00\"é"],"b":{"c":null,"d":true},"e":[]} "#).unwrap();
        assert_eq!(value.get("a").items()[1], Json::Number("-2.5e3".into()));
        assert_eq!(value.get("a").items()[2].text(), Some("x\n\u{e9}\u{1f600}\"é"));
        assert_eq!(*value.get("b").get("d"), Json::Bool(true));
        assert_eq!(*value.get("b").get("c"), Json::Null);
        assert!(value.get("e").items().is_empty() && value.get("none").items().is_empty());
    }

    #[test]
    fn refuses_what_is_no_json() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "\"x",
            "1 2",
            "\"\\x\"",
            "\"\\ud800x\"",
            "tru",
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
