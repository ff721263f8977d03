//! What comes as messages, for the fuzz targets.

use super::message::{Asked, Family, Form, NoQuestion, Question, Reply, name};

/// What may come as an answer. Nothing but what repeats the question counts, and what counts is bounded.
pub(crate) fn answer(data: &[u8]) {
    let [family, case, plain, rest @ ..] = data else { return };
    let question = Question {
        name: name("www.a.example").unwrap_or_default(),
        family: if family & 1 == 0 { Family::V4 } else { Family::V6 },
        client: None,
    };
    let form = Form {
        id: 0x1234,
        case: u64::from(*case),
        plain: plain & 1 == 1,
        padded: false,
    };
    let Reply::Answer(found) = question.read(form, rest) else {
        return;
    };
    assert_eq!(rest[..2], [0x12, 0x34], "another id");
    assert!(
        found.ips.len() <= super::message::MAX_ADDRESSES
            && found.ips.iter().all(|ip| Family::of(*ip) == question.family)
    );
    assert!(found.code == 0 || found.code == 3, "{}", found.code);
    let other = Form { id: 0x1235, ..form };
    assert_eq!(question.read(other, rest), Reply::Foreign, "any id does");
    let mut small = rest.to_vec();
    let asked = question.encode(Form { plain: true, ..form }).unwrap_or_default();
    if let Some(name) = small.get_mut(12..27)
        && *name == asked[12..27]
        && form.case != 0
    {
        name.make_ascii_lowercase();
        let read = question.read(form, &small);
        assert!(
            *name_of(&small) == asked[12..27] || !matches!(read, Reply::Answer(_)),
            "any case does"
        );
    }
}

fn name_of(message: &[u8]) -> &[u8] {
    &message[12..27]
}

/// What clients ask: what is answered is no longer than they take, and is read back as an answer to it.
pub(crate) fn question(data: &[u8]) {
    let asked = match Asked::read(data) {
        Ok(asked) => asked,
        Err(NoQuestion::Silence) => return,
        Err(NoQuestion::Answer(answer)) => {
            assert!(answer.len() <= data.len() && answer[..2] == data[..2] && answer[2] & 0x80 != 0);
            return;
        }
    };
    let ips = [[192, 0, 2, 1].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()];
    for room in [asked.room(), 65_535] {
        let answer = asked.answer(0, &ips, 60, room);
        assert!(answer.len() <= room.max(512) && answer.get(2).is_some_and(|flags| flags & 0x80 != 0));
        assert!(asked.is_answered_by(asked.id(), &answer) && !asked.is_answered_by(asked.id() ^ 1, &answer));
        assert!(
            matches!(Asked::read(&answer), Err(NoQuestion::Silence)),
            "an answer to an answer"
        );
    }
}
