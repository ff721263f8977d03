//! XHTTP: requests as a server reads them, and the order of numbered ones.

use crate::http::head;
use crate::xhttp::queue::{Queue, Turn};
use crate::xhttp::request::is_in_head;
use crate::xhttp::settings::{
    Data, DataPlace, Obfuscation, Padding, PaddingMethod, PaddingPlace, Place, Placed, Settings, Span,
};
use crate::xhttp::{Ask, Incoming, ids, judge};
use crate::{Protocol, Step};

/// Settings by one byte: two bits each for the places of the session id, the number, the padding and the payload.
fn settings(which: u8) -> Settings {
    let place = |at: u8| [Place::Path, Place::Query, Place::Header, Place::Cookie][usize::from(at & 3)];
    let placed = |at, key: &str| Placed {
        place: place(at),
        key: key.into(),
    };
    let paddings = [
        None,
        Some(PaddingPlace::QueryInHeader),
        Some(PaddingPlace::Cookie),
        Some(PaddingPlace::Query),
    ];
    let obfuscation = paddings[usize::from(which >> 4 & 3)].map(|place| Obfuscation {
        place,
        key: "x_padding".into(),
        header: "X-Padding".into(),
        method: PaddingMethod::Tokenish,
    });
    let data = [DataPlace::Auto, DataPlace::Body, DataPlace::Header, DataPlace::Cookie];
    Settings {
        path: "/p".into(),
        session: placed(which, "x_session"),
        seq: placed(which >> 2, "x_seq"),
        padding: Padding {
            bytes: Span::new(3, 9),
            obfuscation,
        },
        data: Data {
            place: data[usize::from(which >> 6)],
            ..Settings::default().data
        },
        ..Settings::default()
    }
}

/// A byte for the settings, and the head of a request.
pub(super) fn request(data: &[u8]) {
    let [which, bytes @ ..] = data else { return };
    let Ok(Step::Done { value: head, .. }) = head::parse_request(bytes, 8192, Protocol::Xhttp) else {
        return;
    };
    let settings = settings(*which);
    let incoming = Incoming {
        method: head.method,
        target: head.target,
        host: head.headers.get("host").unwrap_or_default(),
        headers: head.headers.iter().collect(),
    };
    match judge(&settings, &incoming) {
        Err(refusal) => assert!(matches!(refusal.status, 400 | 404 | 405 | 500)),
        Ok(Ask::Post(post)) => {
            assert!(ids::is_id(&post.session) && post.in_head.len() < bytes.len());
            assert_eq!(post.no_body, is_in_head(&settings.data));
        }
        Ok(Ask::Down { session } | Ask::Up { session, .. }) => assert!(ids::is_id(&session)),
        Ok(Ask::One | Ask::Options) => {}
    }
}

/// How many may wait, then the numbers of requests as they come; the highest bit says that a body is cut short.
pub(super) fn queue(data: &[u8]) {
    let [most, seqs @ ..] = data else { return };
    let most = usize::from(most % 8);
    let (mut queue, mut out, mut held) = (Queue::new(most), Vec::new(), 0usize);
    for seq in seqs.iter().map(|byte| u64::from(byte & 0x7f)) {
        match queue.turn(seq) {
            Turn::Now => {
                assert_eq!(queue.turn(seq), Turn::Repeated);
                out.push(seq);
                queue.finish();
            }
            Turn::Later => match queue.hold(seq, vec![0; 3]) {
                Ok(()) => held += 1,
                Err(_) => {
                    assert_eq!(held, most, "refused before it was full");
                    break;
                }
            },
            Turn::Repeated => {}
        }
        while let Some(body) = queue.pop() {
            assert_eq!(body.len(), 3);
            out.push(out.len() as u64);
            held -= 1;
        }
        assert!(held <= most && queue.bytes() == 3 * held);
    }
    assert!(
        out.iter().enumerate().all(|(at, seq)| at as u64 == *seq),
        "out of order"
    );
}
