//! What strangers see, beside what they see of the target.

use std::process::Command;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::sites::{SITES, Sites};
use super::{Ours, server};
use crate::common::to_the_end;
use crate::nginx;
use crate::programs::have;

/// The statistics of the script that compares times.
#[test]
fn times_are_compared_as_tables_say() {
    if !have("python3", &["--version"]) {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/measure-strangers");
    let checked = Command::new("python3").args([script, "--check"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// What a stranger says, and whether he ends his direction then.
const PROBES: [(&[u8], bool); 7] = [
    (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", false),
    (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", true),
    (b"\x00", true),
    (b"", true),
    (b"\x16\x03\x01\x40\x01\x01", true),
    (b"\x15\x03\x01\x00\x02\x02\x28", false),
    (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", true),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_sees_what_the_target_shows() {
    if !nginx::there() {
        return;
    }
    let sites = Sites::start(&SITES[..1]).await;
    let limit = json!({"afterBytes": 0, "bytesPerSec": 1_000_000, "burstBytesPerSec": 1_000_000});
    let limited = json!({"limitFallbackUpload": limit, "limitFallbackDownload": limit});
    let none = json!({});
    let ours = Ours::start(vec![
        server(sites.at[0], "raw", &none),
        server(sites.at[0], "raw", &limited),
    ])
    .await;
    for (said, ends) in PROBES {
        let mut views = Vec::new();
        for at in [sites.at[0], ours.at[0], ours.at[1]] {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(said).await.unwrap();
            if ends {
                stream.shutdown().await.unwrap();
            }
            let (answer, end) = to_the_end(&mut stream).await;
            // nginx says when it answered.
            let text = String::from_utf8_lossy(&answer).into_owned();
            let lines: Vec<String> = text
                .lines()
                .filter(|line| !line.starts_with("Date:"))
                .map(str::to_owned)
                .collect();
            views.push((lines, answer.len(), end));
        }
        assert_eq!(views[0], views[1], "{said:?}");
        assert_eq!(views[0], views[2], "{said:?}, with a limit");
    }
    // Somebody who speaks TLS gets the site's own certificate, and the site.
    for at in [ours.at[0], ours.at[1]] {
        let url = format!("https://a.test:{}/", at.port());
        let resolve = format!("a.test:{}:{}", at.port(), at.ip());
        let answer = Command::new("curl")
            .args(["-sk", "--max-time", "20", "--resolve", &resolve, &url])
            .output();
        assert_eq!(String::from_utf8_lossy(&answer.unwrap().stdout), "the site");
    }
}
