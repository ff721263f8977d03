//! Folders as zip and tar, read by other programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Setup, noise, program, run};

/// Many files in folders, with names of all kinds.
fn folder() -> tempfile::TempDir {
    let work = tempfile::tempdir().unwrap();
    let shared = work.path().join("Büro 你好");
    let deep = "a long name of a folder, and another one/".repeat(6);
    for inner in ["", "leer", "ελληνικά/дальше", &deep] {
        fs::create_dir_all(shared.join(inner)).unwrap();
    }
    for at in 0..3000 {
        let name = format!(
            "{}/файл {at} \u{1f980} e\u{301}.txt",
            ["", "ελληνικά", "ελληνικά/дальше", &deep][at % 4]
        );
        fs::write(shared.join(name.trim_start_matches('/')), noise(at)).unwrap();
    }
    fs::write(shared.join("large"), noise(3_000_000)).unwrap();
    symlink("/etc/passwd", shared.join("link")).unwrap();
    work
}

/// Every file below a folder with what it holds, and every folder.
fn all(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let (kind, path) = (entry.as_ref().unwrap().file_type().unwrap(), entry.unwrap().path());
            let short = path.strip_prefix(folder).unwrap().to_owned();
            if kind.is_dir() {
                found.push((short, None));
                left.push(path);
            } else if kind.is_file() {
                found.push((short, Some(fs::read(path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_big_folder_is_unpacked_by_others() {
    let work = folder();
    let shared = work.path().join("Büro 你好");
    let server = Setup::share(&shared).start();
    let expected = all(&shared);
    assert!(expected.len() > 3000);
    let unpacked = |by: &str, command: &mut Command| {
        let out = tempfile::tempdir().unwrap();
        run(command.current_dir(out.path()).env("LC_ALL", "C.UTF-8"));
        assert!(all(&out.path().join("Büro 你好")) == expected, "{by}");
    };
    let zip = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall()";
    let tar = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(filter='data')";
    let by_zip = [("python3", vec!["-c", zip]), ("unzip", vec!["-q"])];
    let by_tar = [("python3", vec!["-c", tar]), ("tar", vec!["-xf"])];
    for (format, kind, others) in [("zip", "application/zip", by_zip), ("tar", "application/x-tar", by_tar)] {
        let answer = server.get(&format!("?{format}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)));
        assert_eq!(
            answer.header("content-length"),
            Some(&*answer.body.len().to_string()),
            "{format}"
        );
        let name = answer.header("content-disposition").unwrap();
        assert!(
            name.ends_with(&format!("filename*=UTF-8''B%C3%BCro%20%E4%BD%A0%E5%A5%BD.{format}")),
            "{name}"
        );
        let head = server.raw(&format!("HEAD /{}/?{format}", server.token), "", b"");
        assert_eq!(head.header("content-length"), answer.header("content-length"));
        let file = work.path().join(format);
        fs::write(&file, &answer.body).unwrap();
        for (by, words) in others {
            if let Some(program) = program(by) {
                unpacked(by, Command::new(program).args(words).arg(&file));
            }
        }
    }
    // A folder in it, and one with nothing in it.
    let inner = server.get("%CE%B5%CE%BB%CE%BB%CE%B7%CE%BD%CE%B9%CE%BA%CE%AC/?tar");
    assert!(inner.status == 200 && inner.body.starts_with("ελληνικά/".as_bytes()));
    assert_eq!(server.get("leer/?zip").status, 200);
    assert_eq!(server.get("large?zip").status, 404);
    assert_eq!(server.get("link/?zip").status, 404);
}

#[test]
fn a_folder_of_more_than_four_gigabytes_has_a_length() {
    let work = tempfile::tempdir().unwrap();
    let size = 5 << 30;
    fs::File::create(work.path().join("sparse"))
        .unwrap()
        .set_len(size)
        .unwrap();
    let server = Setup::share(work.path()).start();
    for (format, more) in [("zip", 500), ("tar", 2500)] {
        let head = server.raw(&format!("HEAD /{}/?{format}", server.token), "", b"");
        let length: u64 = head.header("content-length").unwrap().parse().unwrap();
        assert!(length > size && length < size + more, "{format}: {}", length - size);
    }
}

#[test]
fn a_file_that_became_shorter_breaks_the_connection() {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("file");
    fs::write(&file, noise(20_000_000)).unwrap();
    let server = Setup::share(work.path()).start();
    for path in ["file", "?zip"] {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        write!(
            stream,
            "GET /{}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            server.token
        )
        .unwrap();
        let mut first = [0; 1000];
        stream.read_exact(&mut first).unwrap();
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(10)
            .unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 20_000_000, "it ends before what was announced");
        fs::write(&file, noise(20_000_000)).unwrap();
    }
}
