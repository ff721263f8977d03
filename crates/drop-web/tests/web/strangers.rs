//! Who has no link, and who has one and wants more.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sealway_drop_transfer::dest::Conflict;
use sealway_drop_web::server::What;

use crate::common::{self, Setup, uploads};

const SECRET: &str = "nobody may read this";

/// A folder `shared` beside something that is not shared, with ways out of it.
fn folder() -> tempfile::TempDir {
    let work = tempfile::tempdir().unwrap();
    let shared = work.path().join("shared");
    fs::create_dir_all(shared.join("folder")).unwrap();
    fs::write(work.path().join("secret"), SECRET).unwrap();
    fs::write(shared.join("file"), "inside").unwrap();
    fs::write(shared.join("folder/file"), "inside").unwrap();
    fs::write(shared.join(".hidden"), SECRET).unwrap();
    symlink("../secret", shared.join("link")).unwrap();
    symlink("..", shared.join("up")).unwrap();
    symlink("/etc", shared.join("folder/etc")).unwrap();
    symlink("file", shared.join("folder/inner")).unwrap();
    mknodat(CWD, shared.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    work
}

/// Ways that lead out, or would if something were decoded twice, late or not at all.
fn hostile() -> Vec<String> {
    let ups = [
        "..",
        "%2e%2e",
        "%2E%2e",
        ".%2e",
        "%2e.",
        "%252e%252e",
        "..%2f",
        "%2e%2e%2f",
        "..%5c",
        "..\\",
        "%c0%ae%c0%ae",
        "..;",
        "..%00",
        "..%20",
        "....",
        "%uff0e%uff0e",
        "up",
        "folder/../..",
        "//..",
        "/./..",
        "..%0d%0a",
        "%ef%bc%8e%ef%bc%8e",
    ];
    let starts = ["", "folder/", "folder//", "./", "file/", "%2f", "%5c", "link/../"];
    let ends = ["secret", "secret%00.png", "secret/", "../secret", "secret?download"];
    let mut all = Vec::new();
    for up in ups {
        for start in starts {
            for depth in [1, 2, 9] {
                for end in ends {
                    all.push(format!("{start}{}{end}", format!("{up}/").repeat(depth)));
                }
            }
        }
    }
    for path in [
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "link",
        "up/secret",
        "up/shared/file",
        "folder/etc/passwd",
        "folder/inner",
        ".hidden",
        "%2ehidden",
        "fifo",
        "file/",
        "file/x",
    ] {
        all.push(path.to_owned());
    }
    all
}

#[test]
fn cve_2025_27142_no_path_leads_out_of_the_folder() {
    let work = folder();
    let server = Setup::share(&work.path().join("shared")).start();
    let paths = hostile();
    assert!(paths.len() >= 1000, "{}", paths.len());
    for path in &paths {
        let answer = server.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.head);
        assert!(!answer.text().contains(SECRET), "{path}");
    }
    // Nor in what is made of the whole.
    for whole in ["?zip", "?tar", ""] {
        let answer = server.get(whole);
        assert_eq!(answer.status, 200);
        assert!(
            !answer.text().contains(SECRET) && !answer.text().contains("/.hidden") && !answer.text().contains("/inner")
        );
    }
    assert_eq!(server.get("folder/file").text(), "inside");
}

#[test]
fn nothing_is_written_outside_of_the_folder() {
    let work = folder();
    let server = Setup::both(&work.path().join("shared")).start();
    let names = |folder: &str| {
        let mut names: Vec<_> = fs::read_dir(work.path().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names(".");
    for path in
        hostile()
            .iter()
            .step_by(5)
            .chain([&"up/new".to_owned(), &"folder/etc/new".to_owned(), &".new".to_owned()])
    {
        server.put(path, "", b"evil");
    }
    for name in [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "",
        "..",
        "a//b",
        ".evil",
        "\\..\\evil",
        "up/evil",
    ] {
        let body =
            format!("--b\r\nContent-Disposition: form-data; name=f; filename=\"{name}\"\r\n\r\nevil\r\n--b--\r\n");
        let headers = format!(
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n",
            body.len()
        );
        server.raw(&format!("POST /{}/", server.token), &headers, body.as_bytes());
    }
    assert_eq!(names("."), before);
    assert_eq!(fs::read_to_string(work.path().join("secret")).unwrap(), SECRET);
    assert!(!names("shared").iter().any(|name| name == ".evil" || name == ".new"));
    assert_eq!(
        fs::read_to_string(work.path().join("shared/file")).unwrap(),
        "inside",
        "nothing is replaced"
    );
}

#[test]
fn what_is_shared_is_read_and_not_changed_unless_that_was_said() {
    let work = folder();
    let shared = work.path().join("shared");
    let server = Setup::share(&shared).start();
    for method in ["PUT", "POST", "DELETE", "MKCOL", "MOVE", "PATCH"] {
        for name in ["file", "new", "", "folder/new"] {
            let line = format!("{method} /{}/{name}", server.token);
            let answer = server.raw(&line, "Content-Length: 4\r\n", b"evil");
            assert_eq!(
                (answer.status, answer.header("allow")),
                (405, Some("GET, HEAD")),
                "{line}"
            );
        }
    }
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "inside");
    assert!(!shared.join("new").exists() && !shared.join("folder/new").exists());
    assert!(!server.get("").text().contains("id=\"upload\""), "nor is it offered");
}

#[test]
fn without_the_link_there_is_nothing() {
    let work = folder();
    let server = Setup::share(&work.path().join("shared")).start();
    let mut other = server.token.clone();
    other.replace_range(21..22, if other.ends_with('A') { "B" } else { "A" });
    let nothing = server.get("not-there");
    for path in [
        "/".to_owned(),
        "/file".to_owned(),
        format!("/{other}/"),
        format!("/{other}/file"),
        format!("/{}/", &server.token[..21]),
        "/favicon.ico".to_owned(),
    ] {
        let answer = server.raw(&format!("GET {path}"), "", b"");
        assert_eq!((answer.status, &answer.body), (404, &nothing.body), "{path}");
        assert!(!answer.text().contains(&server.token));
    }
}

#[test]
fn pages_of_others_get_nothing() {
    let work = folder();
    let server = Setup {
        names: vec!["files.example".into()],
        ..Setup::both(&work.path().join("shared"))
    }
    .start();
    let file = format!("GET /{}/file", server.token);
    // DNS rebinding.
    for host in [
        "evil.example",
        "files.example.evil.example",
        "127.0.0.1.evil.example",
        "",
    ] {
        assert_eq!(
            server.raw(&file, &format!("Host: {host}\r\n"), b"").status,
            421,
            "{host}"
        );
    }
    assert_eq!(
        server
            .raw(&file, "Host: files.example\r\nHost: evil.example\r\n", b"")
            .status,
        421
    );
    assert_eq!(
        server
            .raw(&format!("GET http://evil.example/{}/file", server.token), "", b"")
            .status,
        421
    );
    assert_eq!(server.raw(&file, "Host: FILES.example:1\r\n", b"").status, 200);
    // Requests that pages of others make.
    let origin = |origin: &str| server.put("new", &format!("Origin: {origin}\r\n"), b"x").status;
    assert_eq!((origin("http://evil.example"), origin("null")), (403, 403));
    assert_eq!(server.put("new", "Sec-Fetch-Site: cross-site\r\n", b"x").status, 403);
    assert!(!work.path().join("shared/new").exists());
    assert_eq!(origin(&format!("http://{}", server.address)), 201);
    // And what they could do with an answer.
    let answer = server.raw(&file, "Origin: http://evil.example\r\n", b"");
    assert!(
        !answer.head.to_ascii_lowercase().contains("access-control"),
        "{}",
        answer.head
    );
    for (name, value) in [
        ("cross-origin-resource-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
        assert_eq!(server.get("").header(name), Some(value), "{name}");
        assert_eq!(server.get("nothing").header(name), Some(value), "{name}");
    }
    assert_eq!(server.get("").header("cache-control"), Some("no-store"));
    let allowed = server.raw(
        &format!("OPTIONS /{}/new", server.token),
        "Origin: http://evil.example\r\n",
        b"",
    );
    assert_eq!(allowed.status, 405);
}

#[test]
fn cve_2026_25154_pages_that_are_shared_run_nothing() {
    let work = tempfile::tempdir().unwrap();
    let script = "<script>alert(1)</script>";
    for name in [
        "page.html",
        "page.svg",
        "page.xml",
        "page",
        "page.js",
        "page.pdf",
        "<script>alert(1)<%2fscript>.html",
    ] {
        fs::write(work.path().join(name), script).unwrap();
    }
    let server = Setup::share(work.path()).start();
    for name in ["page.html", "page.svg", "page.xml", "page", "page.js"] {
        let answer = server.get(name);
        let kind = answer.header("content-type").unwrap();
        assert!(
            ["text/plain; charset=utf-8", "application/octet-stream"].contains(&kind),
            "{name}: {kind}"
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow"),
            "{policy}"
        );
    }
    let policy = server
        .get("page.pdf")
        .header("content-security-policy")
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("script"),
        "{policy}"
    );
    let page = server.get("").text();
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
}

#[test]
fn a_pin_can_be_tried_a_few_times() {
    let work = folder();
    let server = Setup {
        pin: Some("123456"),
        ..Setup::share(&work.path().join("shared"))
    }
    .start();
    let file = format!("GET /{}/file", server.token);
    let tried = |header: &str| server.raw(&file, header, b"").status;
    let asked = server.raw(&file, "", b"");
    assert!(
        asked.status == 401
            && asked
                .header("www-authenticate")
                .is_some_and(|ask| ask.starts_with("Basic "))
    );
    assert_eq!(
        tried("Authorization: Basic OjEyMzQ1Ng==\r\n"),
        200,
        "to ask without one is no guess"
    );
    for _ in 0..10 {
        assert_eq!(tried("Authorization: Basic OjEyMzQ1Nw==\r\n"), 401);
    }
    assert_eq!(
        tried("Authorization: Basic OjEyMzQ1Ng==\r\n"),
        429,
        "enough, also for the right one"
    );
}

#[test]
fn one_address_has_a_bounded_number_of_connections() {
    let work = folder();
    let server = Setup::share(&work.path().join("shared")).start();
    let open = || std::net::TcpStream::connect(server.address).unwrap();
    let held: Vec<_> = (0..64).map(|_| open()).collect();
    let refused = |stream: &mut std::net::TcpStream| {
        use std::io::{Read, Write};
        stream.set_read_timeout(Some(common::LIMIT)).unwrap();
        let request = format!(
            "GET /{}/file HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            server.token
        );
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes.is_empty()
    };
    assert!(refused(&mut open()), "one more is let go");
    drop(held);
    common::until("a place", || !refused(&mut open()));
}

#[test]
fn heads_are_bounded() {
    let work = folder();
    let server = Setup::share(&work.path().join("shared")).start();
    let line = format!("GET /{}/file", server.token);
    let many = "X: y\r\n".repeat(100);
    assert_eq!(server.raw(&line, &many, b"").status, 431);
    let long = format!("X: {}\r\n", "y".repeat(100 << 10));
    assert_eq!(server.raw(&line, &long, b"").status, 431);
    assert_eq!(
        server.raw(&format!("{line}?{}", "x".repeat(20 << 10)), "", b"").status,
        404
    );
}

#[test]
fn what_comes_is_bounded() {
    let work = tempfile::tempdir().unwrap();
    let mut uploads = uploads(Conflict::Rename);
    uploads.max_size = Some(1000);
    let folder = work.path().to_owned();
    let server = Setup::of(What::Receive { folder, uploads }).start();
    assert_eq!(server.put("large", "", &[0; 1001]).status, 413);
    let chunked = format!("3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1001));
    let line = format!("PUT /{}/large", server.token);
    assert_eq!(
        server
            .raw(&line, "Transfer-Encoding: chunked\r\n", chunked.as_bytes())
            .status,
        413
    );
    // More than any disk has.
    let range = "Content-Range: bytes */1000000000000000000\r\n";
    let free = Setup::receive(work.path()).start();
    assert_eq!(free.put("huge", range, b"").status, 507);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0, "nothing is left");
    assert_eq!(server.put("right", "", &[0; 1000]).status, 201);
}

#[test]
fn a_drop_box_shows_nothing() {
    let work = folder();
    let server = Setup::receive(&work.path().join("shared")).start();
    let page = server.get("");
    assert!(page.status == 200 && page.text().contains("id=\"upload\""));
    assert!(!page.text().contains("folder/") && !page.text().contains("?zip"));
    for path in ["file", "folder/", "folder", "?zip", "file?download"] {
        let answer = server.get(path);
        assert!(answer.status == 404 || !answer.text().contains("inside"), "{path}");
    }
    assert_eq!(server.get("file").status, 404);
    assert_eq!(server.put("file", "", b"other").text(), "file (1)\n");
}
