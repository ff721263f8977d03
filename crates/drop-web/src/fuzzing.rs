//! What strangers may send, for the fuzz target and for the test that replays its corpus. Not part of the public interface.

use crate::form::{Event, Form, Malformed};
use crate::head::{self, Conditions, Version};
use crate::path::{self, link};
use crate::range::{Wanted, sent, wanted};
use crate::secret::{Secret, password};

#[cfg(test)]
mod corpora;

/// The fuzz target's name and its entry.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("drop_web", run)];

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => target(rest),
        1 => ranges(rest),
        2 => form(rest),
        _ => heads(rest),
    }
}

fn target(rest: &[u8]) {
    let token = Secret::given("t".to_owned());
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let Some(found) = path::read(text, &token) else { return };
    let Some(path) = found.path else { return };
    for name in path.components() {
        assert!(!name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0));
    }
    let again = path::read(&format!("/t/{}", link(&path)), &token);
    assert!(again.is_some_and(|again| again.path == Some(path)), "a link leads back");
}

fn ranges(rest: &[u8]) {
    for size in [0, 1, 1000, u64::MAX] {
        if let Wanted::Part(range) = wanted(Some(rest), size) {
            assert!(range.start < range.end && range.end <= size);
        }
    }
    if let Some(sent) = sent(rest)
        && let Some(range) = sent.range
    {
        assert!(range.start < range.end && range.end <= sent.size);
    }
}

/// The same in one piece and in pieces of as many bytes as the first one says.
fn form(rest: &[u8]) {
    let Some((&step, body)) = rest.split_first() else {
        return;
    };
    let read = |step: usize| {
        let mut form = Form::of(b"multipart/form-data; boundary=b")?;
        let mut parts: Vec<(Option<Vec<u8>>, Vec<u8>)> = Vec::new();
        for piece in body.chunks(step) {
            let result = form.read(piece, |event| {
                match event {
                    Event::Part(name) => parts.push((name, Vec::new())),
                    Event::Data(data) => parts
                        .last_mut()
                        .ok_or(Malformed("data before a part"))?
                        .1
                        .extend_from_slice(data),
                    Event::End => {}
                }
                Ok::<_, Malformed>(())
            });
            if result.is_err() {
                return None;
            }
        }
        form.finish().ok().map(|()| parts)
    };
    let (whole, pieces) = (read(body.len().max(1)), read(usize::from(step) + 1));
    assert!(whole == pieces, "pieces make no difference");
}

fn heads(rest: &[u8]) {
    let names = ["localhost".to_owned()];
    head::is_ours(rest, &names);
    head::is_from_here(Some(rest), Some(rest), "https", rest);
    password(rest);
    Form::of(rest);
    let disposition = head::disposition(rest, true);
    assert!(
        disposition.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "a header of plain characters"
    );
    let version = Version {
        tag: "\"t\"".to_owned(),
        date: "Sun, 06 Nov 1994 08:49:37 GMT".to_owned(),
        dated: true,
    };
    let conditions = Conditions {
        none_match: Some(rest),
        if_range: Some(rest),
        range: Some(rest),
        ..Conditions::default()
    };
    head::answer(conditions, &version, 1000);
}

/// One of everything in order, to start a corpus with.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let form =
        b"\x03--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a%22.txt\"\r\n\r\ncontent\r\n--b--\r\n";
    vec![
        (
            "target",
            seed(0, b"/t/folder/a%20b%e4%bd%a0?sort=size&desc&modified=1700000000000"),
        ),
        ("target-up", seed(0, b"/t/%2e%2e/..%2f/etc/passwd")),
        ("range", seed(1, b"bytes=10-19")),
        ("range-sent", seed(1, b"bytes 10-19/1000")),
        ("form", seed(2, form)),
        ("host", seed(3, b"[2001:db8::7]:8000")),
        ("password", seed(3, b"Basic OjEyMzQ1Ng==")),
        ("tags", seed(3, b"W/\"a\", \"t\"")),
    ]
}
