use super::*;

/// Draws the last of everything.
fn last(n: usize) -> usize {
    n - 1
}

fn request(paths: &[&str]) -> Request {
    Request {
        version: "1.0".into(),
        method: "POST".into(),
        paths: paths.iter().map(|path| (*path).into()).collect(),
        headers: vec![
            ("Host".into(), vec!["a.example".into(), "b.example".into()]),
            ("X-None".into(), vec![]),
        ],
    }
}

#[test]
fn the_bytes_of_one_request() {
    let own = request(&["/a", "/b?x=1"]);
    assert_eq!(own.write(&mut |_| 0), b"POST /a HTTP/1.0\r\nHost: a.example\r\n\r\n");
    assert_eq!(own.write(&mut last), b"POST /b?x=1 HTTP/1.0\r\nHost: b.example\r\n\r\n");
    let usual = String::from_utf8(Request::default().write(&mut last)).unwrap();
    assert!(
        usual.starts_with("GET / HTTP/1.1\r\nHost: www.bing.com\r\nUser-Agent: Mozilla/5.0 "),
        "{usual}"
    );
}

#[test]
fn the_bytes_of_one_response() {
    let own = Response {
        version: "1.0".into(),
        status: "404".into(),
        reason: "Not Found".into(),
        headers: vec![("X".into(), vec!["1".into(), "2".into()])],
    };
    assert_eq!(
        own.write(784_111_777, &mut last),
        b"HTTP/1.0 404 Not Found\r\nX: 2\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
    );
    let dated = Response {
        headers: vec![("date".into(), vec!["never".into()])],
        ..own
    };
    assert_eq!(
        dated.write(0, &mut last),
        b"HTTP/1.0 404 Not Found\r\ndate: never\r\n\r\n"
    );
    assert_eq!(
        Response::default().write(0, &mut |_| 0),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\
          Connection: keep-alive\r\nPragma: no-cache\r\nCache-Control: private, no-cache\r\n\
          Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
    );
}

#[test]
fn requests_are_known_by_their_path() {
    let own = request(&["/a", "/b?x=1"]);
    for head in [
        "POST /a HTTP/1.0\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\n\r\n",
        "GET /a?anything HTTP/1.1\r\n\r\n",
        "GET /b HTTP/1.1\r\n\r\n",
    ] {
        for n in 0..head.len() {
            assert_eq!(own.accept(&head.as_bytes()[..n]), Ok(Step::More(1)), "{head:?} {n}");
        }
        let used = head.len();
        let all = [head.as_bytes(), b"\0payload\r\n\r\n"].concat();
        assert_eq!(own.accept(&all), Ok(Step::Done { value: (), used }));
    }
    for head in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET /A HTTP/1.1\r\n\r\n",
        "GET /a/ HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(own.accept(head.as_bytes()), Err(Refusal::NotFound), "{head:?}");
    }
}

/// What a web server would refuse at once is not waited for.
#[test]
fn what_is_no_request_is_refused_as_soon_as_it_shows() {
    let own = Request::default();
    for bytes in [
        &b"\x16\x03\x01"[..],
        b"\0",
        b" ",
        b"GET\r\n",
        b"GET  /",
        b"GET / \r",
        b"GET / HTTP/1.1\n",
        b"GET / HTTP/x",
        b"GET /\0",
        b"abcdefghijklmnopqrstu",
    ] {
        assert_eq!(own.accept(bytes), Err(Refusal::BadRequest), "{}", bytes.escape_ascii());
    }
}

#[test]
fn heads_are_bounded() {
    let head = |len: usize| {
        let mut head = b"GET / HTTP/1.1\r\nX: ".to_vec();
        head.resize(len - 4, b'a');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    let own = Request::default();
    let used = MAX_HEAD;
    assert_eq!(own.accept(&head(MAX_HEAD)), Ok(Step::Done { value: (), used }));
    assert_eq!(own.accept(&head(MAX_HEAD)[..MAX_HEAD - 1]), Ok(Step::More(1)));
    assert_eq!(own.accept(&head(MAX_HEAD + 1)), Err(Refusal::BadRequest));
    let mut path = b"GET /".to_vec();
    path.resize(MAX_HEAD, b'a');
    assert_eq!(own.accept(&path), Err(Refusal::BadRequest));
    assert_eq!(skip_response(&head(MAX_HEAD)), Ok(Step::Done { value: (), used }));
    assert_eq!(skip_response(&head(MAX_HEAD)[..100]), Ok(Step::More(1)));
    assert!(skip_response(&head(MAX_HEAD + 1)).is_err());
}

#[test]
fn refusals() {
    assert_eq!(
        Refusal::NotFound.reply(1_767_225_599),
        b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nCache-Control: private\r\nContent-Length: 0\r\n\
          Date: Wed, 31 Dec 2025 23:59:59 GMT\r\n\r\n"
    );
    assert!(
        Refusal::BadRequest
            .reply(0)
            .starts_with(b"HTTP/1.1 400 Bad Request\r\n")
    );
}

#[test]
fn dates() {
    for (time, wanted) in [
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
        (1_709_251_200, "Fri, 01 Mar 2024 00:00:00 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (i64::MIN, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        assert_eq!(date(time), wanted);
    }
}
