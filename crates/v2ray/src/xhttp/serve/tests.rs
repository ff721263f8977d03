use proptest::prelude::*;

use super::super::request::{Asked, request};
use super::super::settings::*;
use super::*;

fn settings() -> Settings {
    Settings {
        path: "/p".into(),
        padding: Padding {
            bytes: Span::just(3),
            obfuscation: None,
        },
        ..Settings::default()
    }
}

fn asked<'a>(method: &'a str, target: &'a str, headers: &[(&'a str, &'a str)]) -> Incoming<'a> {
    Incoming {
        method,
        target,
        host: "h:80",
        headers: headers.to_vec(),
    }
}

const PADDED: (&str, &str) = ("Referer", "http://h/p/?x_padding=XXX");

fn status(settings: &Settings, method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
    judge(settings, &asked(method, target, headers)).map_or_else(|refusal| refusal.status, |_| 200)
}

#[test]
fn kinds_of_requests() {
    let s = settings();
    let get = |method, target| judge(&s, &asked(method, target, &[PADDED]));
    let session = || "a-b".to_owned();
    assert_eq!(get("GET", "/p/a-b?x=y"), Ok(Ask::Down { session: session() }));
    assert_eq!(
        get("POST", "/p/a-b"),
        Ok(Ask::Up {
            session: session(),
            padded: true
        })
    );
    let post = |seq, in_head: &[u8]| {
        Ask::Post(Post {
            session: session(),
            seq,
            in_head: in_head.to_vec(),
            no_body: false,
        })
    };
    assert_eq!(get("POST", "/p/a-b/18446744073709551615"), Ok(post(u64::MAX, b"")));
    assert_eq!(get("POST", "http://h/p/a%2Db/0"), Ok(post(0, b"")));
    assert_eq!(get("POST", "/p/"), Ok(Ask::One));
    assert_eq!(get("POST", "/p"), Ok(Ask::One));
    assert_eq!(get("OPTIONS", "/p/x/y/z"), Ok(Ask::Options));
    // Without a Referer the padding may stand in the target.
    let up = judge(&s, &asked("POST", "/p/a-b?x_padding=XXX", &[]));
    assert_eq!(
        up,
        Ok(Ask::Up {
            session: session(),
            padded: false
        })
    );
    let headers = [PADDED, ("X-Data-0", "YQ"), ("Cookie", "x_data_0=Yg")];
    assert_eq!(judge(&s, &asked("POST", "/p/a-b/1", &headers)), Ok(post(1, b"ab")));
}

#[test]
fn statuses() {
    let s = settings();
    let padded = |method, target| status(&s, method, target, &[PADDED]);
    assert_eq!(padded("GET", "/q/a"), 404);
    assert_eq!(padded("GET", "/pp/a"), 404);
    assert_eq!(padded("DELETE", "/p/a"), 405);
    assert_eq!(padded("GET", "/p/"), 405);
    for seq in ["x", "-1", "+1", "18446744073709551616", "1x"] {
        let target = format!("/p/a/{seq}");
        assert_eq!(status(&s, "POST", &target, &[PADDED]), 500, "{seq}");
    }
    let long = format!("/p/{}/0", "a".repeat(129));
    assert_eq!(status(&s, "POST", &long, &[PADDED]), 400);
    for wrong in ["", "XX", "XXXX"] {
        let referer = format!("http://h/p/?x_padding={wrong}");
        assert_eq!(status(&s, "GET", "/p/a", &[("referer", &referer)]), 400, "{wrong}");
    }
    // A Referer without padding is not made up for by the target.
    assert_eq!(
        status(&s, "GET", "/p/a?x_padding=XXX", &[("referer", "http://h/")]),
        400
    );
    assert_eq!(status(&s, "POST", "/p/a/0", &[PADDED, ("X-Data-0", "!")]), 400);
    // The host is looked at first.
    let host = Settings {
        host: "H".into(),
        ..settings()
    };
    assert_eq!(status(&host, "GET", "/p/a", &[PADDED]), 200);
    let host = Settings {
        host: "x".into(),
        ..settings()
    };
    assert_eq!(status(&host, "GET", "/p/a", &[]), 404);
}

#[test]
fn modes_take_their_own_requests() {
    for (mode, down, one, up, post) in [
        (Mode::Auto, 200, 200, 200, 200),
        (Mode::PacketUp, 200, 400, 400, 200),
        (Mode::StreamUp, 200, 200, 200, 400),
        (Mode::StreamOne, 400, 200, 400, 400),
    ] {
        let s = Settings { mode, ..settings() };
        let got = [("GET", "/p/a"), ("POST", "/p/"), ("POST", "/p/a"), ("POST", "/p/a/0")]
            .map(|(method, target)| status(&s, method, target, &[PADDED]));
        assert_eq!(got, [down, one, up, post], "{mode:?}");
    }
}

#[test]
fn the_client_is_who_a_trusted_server_says() {
    let request = |headers: &[(&'static str, &'static str)]| asked("GET", "/", headers);
    let told = ("X-Forwarded-For", "192.0.2.1, 10.0.0.1");
    let trusted = ["X-Front".to_owned()];
    assert_eq!(client_address(&request(&[told]), &trusted), None);
    assert_eq!(
        client_address(&request(&[told, ("x-front", "")]), &trusted),
        Some([192, 0, 2, 1].into())
    );
    assert_eq!(client_address(&request(&[told]), &[]), None);
}

#[test]
fn headers_of_answers() {
    let s = settings();
    let options = asked(
        "OPTIONS",
        "/p/",
        &[
            ("Origin", "https://o"),
            ("Access-Control-Request-Method", "PUT"),
            ("Access-Control-Request-Headers", "a, b"),
        ],
    );
    let line = |headers: Vec<(String, String)>| {
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        lines.join(" | ")
    };
    assert_eq!(
        line(answer_headers(&s, Some(&options), Answered::Other, 1)),
        "Access-Control-Allow-Origin: https://o | Access-Control-Allow-Methods: PUT | \
         Access-Control-Allow-Headers: a, b | X-Padding: XXX"
    );
    assert_eq!(
        line(answer_headers(&s, None, Answered::Down, 1)),
        "Access-Control-Allow-Origin: * | X-Padding: XXX | X-Accel-Buffering: no | Cache-Control: no-store | \
         Content-Type: text/event-stream"
    );
}

fn placed() -> impl Strategy<Value = Placed> {
    (0..4usize).prop_map(|at| Placed {
        place: [Place::Path, Place::Query, Place::Header, Place::Cookie][at],
        key: ["", "x_k", "X-K", "x_k"][at].into(),
    })
}

proptest! {
    /// Whatever a client writes, a server with the same settings reads.
    #[test]
    fn both_ends_agree(
        seed: u64,
        seq: u64,
        session in placed(),
        number in placed(),
        place in 0..5usize,
        tokenish: bool,
        data in 0..4usize,
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let number = Placed { key: format!("{}n", number.key), ..number };
        let obfuscation = (place < 4).then(|| Obfuscation {
            place: [PaddingPlace::QueryInHeader, PaddingPlace::Header, PaddingPlace::Cookie, PaddingPlace::Query][place],
            key: "x_padding".into(),
            header: "X-Padding".into(),
            method: if tokenish { PaddingMethod::Tokenish } else { PaddingMethod::Repeat },
        });
        let place = [DataPlace::Auto, DataPlace::Body, DataPlace::Header, DataPlace::Cookie][data];
        let s = Settings {
            path: "/p%20q".into(),
            session,
            seq: number,
            padding: Padding { bytes: Span::new(100, 1000), obfuscation },
            data: Data { place, ..Settings::default().data },
            ..Settings::default()
        };
        let in_head = if super::super::request::is_in_head(&s.data) { &payload[..] } else { b"" };
        for ask in [Asked::One, Asked::Up { session: "s1" }, Asked::Down { session: "s1" }, Asked::Post { session: "s1", seq, in_head }] {
            let made = request(&s, true, "h", &ask, seed);
            let got = judge(&s, &Incoming {
                method: &made.method,
                target: &made.target,
                host: &made.host,
                headers: made.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            });
            let session = "s1".to_owned();
            let want = match ask {
                Asked::One => Ask::One,
                Asked::Up { .. } => Ask::Up { session, padded: true },
                Asked::Down { .. } => Ask::Down { session },
                Asked::Post { .. } => Ask::Post(Post {
                    session,
                    seq,
                    in_head: in_head.to_vec(),
                    no_body: super::super::request::is_in_head(&s.data),
                }),
            };
            prop_assert_eq!(got, Ok(want));
        }
    }
}
