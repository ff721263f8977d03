//! Downloads and uploads by curl, over TLS and without.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{LIMIT, Running, Setup, noise, program, run, until};

/// curl that speaks to this server alone.
fn curl(server: &Running) -> Option<Command> {
    let mut command = Command::new(program("curl")?);
    command.args(["-sS", "--noproxy", "*", "--max-time", &LIMIT.as_secs().to_string()]);
    if let Some(pinned) = &server.pinned {
        command.args(["-k", "--pinnedpubkey", pinned]);
    }
    Some(command)
}

/// The status, the headers and the body.
fn ask(server: &Running, words: &[&str], path: &str) -> Option<(u16, String, Vec<u8>)> {
    let out = run(curl(server)?
        .args(["-i"])
        .args(words)
        .arg(format!("{}{path}", server.link)));
    let mut rest = &out[..];
    loop {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(rest[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        rest = &rest[end..];
        if status != 100 {
            return Some((status, head, rest.to_vec()));
        }
    }
}

fn header(head: &str, name: &str) -> String {
    let value = head
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name}: {head}")).to_owned()
}

fn downloads(tls: bool) {
    let work = tempfile::tempdir().unwrap();
    let content = noise(5_000_001);
    fs::write(work.path().join("a file.bin"), &content).unwrap();
    fs::write(work.path().join("empty"), "").unwrap();
    let setup = Setup::share(work.path());
    let server = if tls { setup.tls() } else { setup }.start();
    let file = "a%20file.bin";
    let Some((status, head, body)) = ask(&server, &[], file) else {
        return;
    };
    assert_eq!((status, body.len()), (200, content.len()));
    assert!(body == content, "every byte");
    assert_eq!(
        header(&head, "content-disposition"),
        "attachment; filename=\"a file.bin\"; filename*=utf-8''a%20file.bin"
    );
    assert_eq!(header(&head, "accept-ranges"), "bytes");
    let length = |head: &str| header(head, "content-length").parse::<usize>().unwrap();

    let (status, head, body) = ask(&server, &["-I"], file).unwrap();
    assert_eq!((status, length(&head), body.len()), (200, content.len(), 0));
    for (range, part) in [
        ("0-0", 0..1),
        ("100-", 100..content.len()),
        ("-1", content.len() - 1..content.len()),
        ("4999999-9999999", 4_999_999..5_000_001),
    ] {
        let (status, head, body) = ask(&server, &["-r", range], file).unwrap();
        assert_eq!((status, length(&head)), (206, part.len()));
        let said = format!("bytes {}-{}/{}", part.start, part.end - 1, content.len());
        assert_eq!(header(&head, "content-range"), said);
        assert!(body == content[part], "{range}");
    }
    let (status, head, _) = ask(&server, &["-r", "5000001-"], file).unwrap();
    assert_eq!(
        (status, header(&head, "content-range")),
        (416, "bytes */5000001".to_owned())
    );
    assert_eq!(ask(&server, &["-r", "0-"], "empty").unwrap().0, 416);
    let (status, head, body) = ask(&server, &[], "empty").unwrap();
    assert_eq!((status, length(&head), body.len()), (200, 0, 0));

    // A tag is weak for a moment after a change: then it promises nothing.
    let mut tag = String::new();
    until("a strong tag", || {
        tag = header(&ask(&server, &["-I"], file).unwrap().1, "etag");
        !tag.starts_with("w/")
    });
    let conditions =
        |name: &str, tag: &str| ask(&server, &["-r", "10-19", "-H", &format!("{name}: {tag}")], file).unwrap();
    assert_eq!(conditions("If-None-Match", &tag).0, 304);
    let (status, _, body) = conditions("If-Range", &tag);
    assert!(status == 206 && body == content[10..20]);
    let (status, _, body) = conditions("If-Range", "\"other\"");
    assert!(status == 200 && body == content);

    // One that broke off goes on.
    let half = work.path().join("half");
    fs::write(&half, &content[..1_234_567]).unwrap();
    let half = half.to_str().unwrap();
    run(curl(&server)
        .unwrap()
        .args(["-C", "-", "-o", half])
        .arg(format!("{}{file}", server.link)));
    assert!(fs::read(half).unwrap() == content);

    // What is told.
    let whole = |sent: u64, wanted: u64| {
        let sent_all = server.heard.sent.lock().unwrap();
        sent_all
            .iter()
            .any(|download| download.path == b"a file.bin" && (download.sent, download.wanted) == (sent, wanted))
    };
    until("the event", || whole(5_000_001, 5_000_001) && whole(10, 10));
}

#[test]
fn files_are_downloaded_whole_and_in_part_in_clear() {
    downloads(false);
}

#[test]
fn files_are_downloaded_whole_and_in_part_over_tls() {
    downloads(true);
}

#[test]
fn many_requests_on_one_connection_get_their_own_answers() {
    let work = tempfile::tempdir().unwrap();
    for name in 0..40 {
        fs::write(work.path().join(name.to_string()), noise(name * 70_001)).unwrap();
    }
    for tls in [false, true] {
        let setup = Setup::share(work.path());
        let server = if tls { setup.tls() } else { setup }.start();
        let Some(mut command) = curl(&server) else { return };
        let out = tempfile::tempdir().unwrap();
        command
            .current_dir(out.path())
            .arg("-O")
            .arg(format!("{}[0-39]", server.link))
            .arg("--remote-name-all");
        run(&mut command);
        for name in 0..40 {
            assert!(
                fs::read(out.path().join(name.to_string())).unwrap() == noise(name * 70_001),
                "{name}"
            );
        }
    }
}

fn uploads(tls: bool) {
    let (work, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = noise(3_000_003);
    let file = work.path().join("new file");
    fs::write(&file, &content).unwrap();
    let setup = Setup::receive(out.path());
    let server = if tls { setup.tls() } else { setup }.start();
    let name = file.to_str().unwrap();
    let Some((status, _, body)) = ask(&server, &["-T", name], "") else {
        return;
    };
    assert_eq!((status, &*body), (201, &b"new file\n"[..]));
    let read = |name: &str| fs::read(out.path().join(name)).unwrap();
    assert!(read("new file") == content);
    // The name is taken: both are kept.
    assert_eq!(ask(&server, &["-T", name], "").unwrap().2, b"new file (1)\n");
    // Into folders that are made.
    assert_eq!(ask(&server, &["-T", name], "a/b/c").unwrap().0, 201);
    assert!(read("a/b/c") == content);
    // A form, as a browser without scripts sends it, and standard input, whose size nobody knows.
    let form = format!("files=@{name}");
    let (status, _, body) = ask(&server, &["-F", &form, "-F", "files=;filename="], "").unwrap();
    assert!(status == 200 && String::from_utf8_lossy(&body).contains("new file (2)"));
    assert!(read("new file (2)") == content);
    let unknown = ["-T", "-", "-H", "Transfer-Encoding: chunked"];
    let mut command = curl(&server).unwrap();
    command
        .args(unknown)
        .arg(format!("{}piped", server.link))
        .stdin(fs::File::open(&file).unwrap());
    run(&mut command);
    assert!(read("piped") == content);
    assert_eq!(
        ask(&server, &["-T", "/dev/null"], "empty").map(|answer| answer.0),
        Some(201)
    );
    assert_eq!(read("empty"), b"");
    // Nothing of the work is left.
    assert!(
        !fs::read_dir(out.path())
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with('.'))
    );
    assert_eq!(server.heard.received.lock().unwrap().len(), 6);
}

#[test]
fn files_are_uploaded_in_clear() {
    uploads(false);
}

#[test]
fn files_are_uploaded_over_tls() {
    uploads(true);
}

/// What broke off goes on at the byte where it did, also after the server was started anew.
#[test]
fn an_upload_that_broke_off_goes_on() {
    let (work, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = noise(9_000_000);
    let file = work.path().join("large");
    fs::write(&file, &content).unwrap();
    let server = Setup::receive(out.path()).start();
    let line = format!("PUT /{}/large", server.token);
    // A client that goes away after a third.
    {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
        )
        .unwrap();
        stream.write_all(&content[..3_000_000]).unwrap();
    }
    until("the end of it", || {
        server
            .heard
            .refused
            .lock()
            .unwrap()
            .iter()
            .any(|why| why.contains("broke off at byte 3000000"))
    });
    drop(server);
    assert!(!out.path().join("large").exists());

    let server = Setup::receive(out.path()).start();
    let question = "Content-Range: bytes */9000000\r\nAccept: application/json\r\n";
    assert_eq!(server.put("large", question, b"").text(), "{\"offset\":3000000}");
    let later = server.put(
        "large",
        "Content-Range: bytes 4000000-8999999/9000000\r\n",
        &content[4_000_000..],
    );
    assert!(
        later.status == 409 && later.text().contains("3000000"),
        "a hole is not filled by guessing"
    );
    let Some(mut command) = curl(&server) else { return };
    run(command.args(["-C", "3000000", "-T"]).arg(&file).arg(&server.link));
    assert!(fs::read(out.path().join("large")).unwrap() == content);
    assert_eq!(server.heard.received.lock().unwrap().len(), 1);
}

#[test]
fn the_same_file_is_not_sent_twice() {
    let out = tempfile::tempdir().unwrap();
    let server = Setup::receive(out.path()).start();
    let put = || server.put("f?modified=1700000000123", "Accept: application/json\r\n", b"content");
    assert_eq!((put().status, put().status), (201, 200));
    let found = fs::metadata(out.path().join("f")).unwrap().modified().unwrap();
    let since = found.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_millis(), 1_700_000_000_123);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

/// With `-k` curl looks at the key alone, and that is what tells this machine from another.
#[test]
fn the_printed_pin_really_verifies() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("file"), "content").unwrap();
    let server = Setup::share(work.path()).tls().start();
    let Some(mut right) = curl(&server) else { return };
    assert_eq!(run(right.arg(format!("{}file", server.link))), b"content");
    let other = Setup::share(work.path()).tls().start();
    let link = format!("{}file", server.link);
    let status = curl(&other).unwrap().arg(&link).output().unwrap().status;
    assert_eq!(status.code(), Some(90), "the key is another's");
    // And by the certificate, whose names are checked as well.
    let pem = server.config.path().join("web.pem");
    let mut by_file = Command::new(program("curl").unwrap());
    by_file
        .args(["-sS", "--noproxy", "*", "--cacert"])
        .arg(Path::new(&pem))
        .arg(&link);
    assert_eq!(run(&mut by_file), b"content");
    // Whoever forgets the s is told.
    let plain = link.replacen("https", "http", 1);
    let said = run(Command::new(program("curl").unwrap()).args(["-sS", "--noproxy", "*", &plain]));
    assert!(String::from_utf8_lossy(&said).contains("begin with https://"));
}

#[test]
fn files_that_were_named_are_all_there_is() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir_all(work.path().join("folder/inner")).unwrap();
    for name in ["one", "two", "folder/inner/three", ".named", "folder/.hidden"] {
        fs::write(work.path().join(name), name).unwrap();
    }
    let paths = ["one", "folder", ".named"].map(|name| work.path().join(name)).to_vec();
    let server = Setup::of(sealway_drop_web::server::What::Share {
        paths,
        hidden: false,
        uploads: None,
    })
    .start();
    assert_eq!(server.get("one").text(), "one");
    assert_eq!(server.get("folder/inner/three").text(), "folder/inner/three");
    assert_eq!(server.get(".named").text(), ".named", "what is named is meant");
    for path in ["two", "one/", "one/x", "folder/../two", "inner/three", "folder/.hidden"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let page = server.get("").text();
    assert!(page.contains("./one") && page.contains("./folder/") && !page.contains("two"));
    assert!(server.get("folder/inner").header("location") == Some("./inner/"));
    drop(server);
    let server = Setup::of(sealway_drop_web::server::What::Share {
        paths: vec![work.path().join("folder")],
        hidden: true,
        uploads: None,
    })
    .start();
    assert_eq!(server.get(".hidden").text(), "folder/.hidden");
    assert!(server.get("").text().contains("./.hidden"));
}
