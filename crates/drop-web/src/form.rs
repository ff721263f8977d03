//! Files in a form, as browsers send it (`multipart/form-data`, RFC 7578), read as they come.

use std::fmt;

/// The longest head of a part, bytes.
const MAX_HEAD: usize = 8 << 10;
/// The longest boundary (RFC 2046 section 5.1.1).
const MAX_BOUNDARY: usize = 70;
/// The most parts of a form.
pub const MAX_PARTS: usize = 10_000;

/// What is read.
#[derive(Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// A part begins; the name of its file, if it is one.
    Part(Option<Vec<u8>>),
    /// More of its content.
    Data(&'a [u8]),
    /// It has ended.
    End,
}

/// What is wrong with a form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the form is wrong: {}", self.0)
    }
}

/// A form that is being read.
#[derive(Debug)]
pub struct Form {
    delimiter: Vec<u8>,
    held: Vec<u8>,
    state: State,
    parts: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Before,
    Delimiter,
    Head,
    Data,
    Done,
}

impl Form {
    /// Of a `Content-Type`; `None` if it is no form with files.
    pub fn of(header: &[u8]) -> Option<Form> {
        let header = std::str::from_utf8(header).ok()?;
        let (kind, rest) = header.split_once(';')?;
        if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
            return None;
        }
        let boundary = parameter(rest.as_bytes(), b"boundary")?;
        if boundary.is_empty() || boundary.len() > MAX_BOUNDARY || boundary.contains(&b'\r') {
            return None;
        }
        Some(Form {
            delimiter: [b"\r\n--", &*boundary].concat(),
            // The first delimiter has no line before it.
            held: b"\r\n".to_vec(),
            state: State::Before,
            parts: 0,
        })
    }

    /// Reads on. At most a head is held back.
    ///
    /// # Errors
    /// What is wrong with the form, or what `event` says.
    pub fn read<E: From<Malformed>>(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        while let Some(after) = self.step(rest, &mut event)? {
            rest = after;
        }
        let keep = match self.state {
            State::Before | State::Data => {
                let keep = rest.len().min(self.delimiter.len() - 1);
                let (now, keep) = rest.split_at(rest.len() - keep);
                if self.state == State::Data && !now.is_empty() {
                    event(Event::Data(now))?;
                }
                keep
            }
            State::Done => &[],
            State::Delimiter | State::Head if rest.len() > MAX_HEAD => {
                return Err(Malformed("a head is too long").into());
            }
            State::Delimiter | State::Head => rest,
        };
        self.held = keep.to_vec();
        Ok(())
    }

    /// One step; what is left after it, or `None` if more has to come.
    fn step<'a, E: From<Malformed>>(
        &mut self,
        rest: &'a [u8],
        event: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Option<&'a [u8]>, E> {
        match self.state {
            State::Before | State::Data => {
                let Some(at) = find(rest, &self.delimiter) else {
                    return Ok(None);
                };
                if self.state == State::Data {
                    if at > 0 {
                        event(Event::Data(&rest[..at]))?;
                    }
                    event(Event::End)?;
                }
                self.state = State::Delimiter;
                Ok(rest.get(at + self.delimiter.len()..))
            }
            State::Delimiter => {
                if rest.starts_with(b"--") {
                    self.state = State::Done;
                    return Ok(None);
                }
                let Some(at) = find(rest, b"\r\n") else {
                    return Ok(None);
                };
                if !rest[..at].iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                    return Err(Malformed("something follows a boundary").into());
                }
                self.state = State::Head;
                // The end of the line stays, so that an empty head ends like any other.
                Ok(rest.get(at..))
            }
            State::Head => {
                let Some(at) = find(rest, b"\r\n\r\n") else {
                    return Ok(None);
                };
                self.parts += 1;
                if at > MAX_HEAD || self.parts > MAX_PARTS {
                    return Err(Malformed("it has too many parts, or too long a head").into());
                }
                event(Event::Part(file_name(&rest[..at])))?;
                self.state = State::Data;
                Ok(rest.get(at + 4..))
            }
            State::Done => Ok(None),
        }
    }

    /// Whether all of it has come.
    ///
    /// # Errors
    /// It breaks off.
    pub fn finish(&self) -> Result<(), Malformed> {
        match self.state {
            State::Done => Ok(()),
            _ => Err(Malformed("it breaks off")),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| Some(byte) == what.first())?;
        if bytes.get(at..)?.starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
}

/// The name of the file of a part, by its head.
fn file_name(head: &[u8]) -> Option<Vec<u8>> {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut values = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        name.eq_ignore_ascii_case(b"content-disposition")
            .then_some(value.get(1..)?)
    });
    let name = parameter(values.next()?, b"filename")?;
    // What browsers put for what would end the name (HTML, "encode multipart/form-data").
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = &name[..];
    while let Some((first, after)) = rest.split_first() {
        let escapes = [(&b"%22"[..], b'"'), (b"%0D", b'\r'), (b"%0A", b'\n')];
        match escapes.iter().find(|(escape, _)| rest.starts_with(escape)) {
            Some((escape, byte)) => {
                plain.push(*byte);
                rest = rest.get(escape.len()..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    Some(plain)
}

/// A parameter `; key=value` or `; key="value"`; a quoted value has no quote in it.
fn parameter(text: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut quoted = false;
    let parts = text.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == b';' && !quoted
    });
    for part in parts {
        let Some(equals) = part.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = part.split_at(equals);
        if name.trim_ascii().eq_ignore_ascii_case(key) {
            let value = value.get(1..)?.trim_ascii();
            let value = match value.strip_prefix(b"\"") {
                Some(value) => value.strip_suffix(b"\"")?,
                None => value,
            };
            return Some(value.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Parts = Vec<(Option<String>, Vec<u8>)>;

    /// Reads a body in pieces of `step` bytes.
    fn parts(body: &[u8], step: usize) -> Result<Parts, Malformed> {
        let mut form = Form::of(b"multipart/form-data; charset=x; boundary=\"AaB\"").unwrap();
        let mut parts: Parts = Vec::new();
        for piece in body.chunks(step.max(1)) {
            form.read(piece, |event| {
                match event {
                    Event::Part(name) => parts.push((name.map(|name| String::from_utf8(name).unwrap()), Vec::new())),
                    Event::Data(data) => parts.last_mut().unwrap().1.extend_from_slice(data),
                    Event::End => {}
                }
                Ok::<_, Malformed>(())
            })?;
        }
        form.finish().map(|()| parts)
    }

    const BODY: &[u8] = b"preamble\r\n--AaB\r\nContent-Disposition: form-data; name=\"x; filename=\"\r\n\r\nfield\r\n--AaB  \r\n\
        content-disposition: form-data; name=\"f\"; filename=\"a%22;b%41.txt\"\r\nContent-Type: text/plain\r\n\r\n\
        1\r\n--Aa\r\n2\r\n--AaB\r\nContent-Disposition: form-data; name=f; filename=empty\r\n\r\n\r\n--AaB--\r\nepilogue";

    #[test]
    fn a_form_is_read_the_same_in_any_pieces() {
        let expected: Parts = vec![
            (None, b"field".to_vec()),
            (Some("a\";b%41.txt".into()), b"1\r\n--Aa\r\n2".to_vec()),
            (Some("empty".into()), vec![]),
        ];
        for step in 1..=BODY.len() {
            assert_eq!(parts(BODY, step).as_ref(), Ok(&expected), "{step}");
        }
    }

    #[test]
    fn what_breaks_off_or_lies_is_refused() {
        let end = BODY.len() - b"--\r\nepilogue".len();
        for cut in 0..end {
            assert!(parts(&BODY[..cut], 7).is_err(), "{cut}");
        }
        assert!(parts(b"--AaB junk\r\n\r\n--AaB--", 9).is_err());
        let long = [b"--AaB\r\nX: ", &vec![b'x'; MAX_HEAD + 1][..]].concat();
        assert!(parts(&long, 1000).is_err());
        assert!(parts(b"", 1).is_err());
    }

    #[test]
    fn other_bodies_are_no_forms() {
        for header in [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/mixed; boundary=x",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=\"x",
        ] {
            assert!(Form::of(header.as_bytes()).is_none(), "{header}");
        }
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        assert!(Form::of(long.as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn content_comes_through(content in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), any::<u8>()], 0..200), step in 1usize..50) {
            prop_assume!(find(&content, b"\r\n--AaB").is_none());
            let body = [b"--AaB\r\nContent-Disposition: form-data; filename=\"n\"\r\n\r\n", &content[..], b"\r\n--AaB--"].concat();
            // What the content ends with may begin the delimiter early.
            let found = parts(&body, step);
            prop_assert_eq!(found, Ok(vec![(Some("n".to_owned()), content)]));
        }
    }
}
