//! curl as a client: of our SOCKS and HTTP inbounds, through a hop of VLESS, to nginx in the clear and over TLS.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use serde_json::json;

use crate::common::pattern;
use crate::nginx;
use crate::programs::{Endpoint, Place, Program, have, said};
use crate::ways::{Files, VLESS, Way, config, freedom, placed};

pub(crate) fn there() -> bool {
    have("curl", &["--version"])
}

/// Runs curl: whether it went well, and what it wrote.
fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new("curl")
        .args(["-sS", "-q", "--max-time", "120", "--noproxy", "none.example"])
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output();
    said(&output.unwrap())
}

/// Asks a TLS port for a path by a name, from an address of this machine.
pub(crate) fn get(files: &Files, from: IpAddr, name: &str, at: SocketAddr, path: &str, more: &[&str]) -> String {
    let url = format!("https://{name}:{}{path}", at.port());
    let resolve = format!("{name}:{}:{}", at.port(), at.ip());
    let from = from.to_string();
    let certificate = files.certificate();
    let mut arguments = vec![
        "--interface",
        &from,
        "--resolve",
        &resolve,
        "--cacert",
        &certificate,
        &url,
    ];
    arguments.extend(more);
    let (well, text) = run(&arguments);
    assert!(well, "curl {arguments:?}: {text}");
    text
}

const LEN: usize = 3 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_socks_and_http() {
    if !(there() && nginx::there()) {
        return;
    }
    let (files, web, far, near) = (Files::new(), Place::new(), Place::new(), Place::new());
    // The server resolves `localhost`, so nginx listens there and not on an address of its own.
    let [plain, tls] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = [plain.local_addr().unwrap(), tls.local_addr().unwrap()].map(|at| at.port());
    drop((plain, tls));
    let root = web.name("");
    std::fs::write(web.path("file"), pattern(12, LEN)).unwrap();
    let http = format!(
        "server {{ listen 127.0.0.1:{}; listen 127.0.0.1:{} ssl; ssl_certificate {}; ssl_certificate_key {};
        root {root}; location / {{ dav_methods PUT; create_full_put_path on; }} }}",
        ports[0],
        ports[1],
        files.certificate(),
        files.key(),
    );
    let at = ports.map(|port| Endpoint::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
    let _web = nginx::start(&web, &http, "", &at).await;

    let way = Way::new(VLESS, "tcp", true);
    let hop = far.port();
    far.let_go();
    let server = config(
        vec![placed(way.inbound(&files), "in", far.at(hop))],
        vec![freedom()],
        vec![],
    );
    let _server = Program::Ours.run(&far, &server).await;
    let accounts = json!([{"user": "someone", "pass": "se:cr@t"}]);
    let local = [
        ("socks", json!({"udp": true})),
        ("socks", json!({"auth": "password", "accounts": accounts})),
        ("http", json!({})),
        ("http", json!({"accounts": accounts})),
    ];
    let doors = local.each_ref().map(|_| near.port());
    let inbounds = local.iter().zip(doors).map(|((protocol, settings), port)| {
        let inbound = json!({"protocol": protocol, "settings": settings});
        placed(inbound, &format!("local{port}"), near.at(port))
    });
    let client = config(inbounds.collect(), vec![way.outbound(far.at(hop), &files)], vec![]);
    near.let_go();
    let _client = Program::Ours.run(&near, &client).await;

    let [socks, closed_socks, http, closed_http] = doors.map(|port| near.at(port).to_string());
    let urls = [
        format!("http://localhost:{}", ports[0]),
        format!("https://localhost:{}", ports[1]),
    ];
    let login = "someone:se%3Acr%40t";
    let open = [
        format!("socks5://{socks}"),
        format!("socks5h://{socks}"),
        format!("socks4://{socks}"),
        format!("socks4a://{socks}"),
        format!("socks5h://{login}@{closed_socks}"),
        format!("http://{http}"),
        format!("http://{login}@{closed_http}"),
        // A SOCKS port serves clients of an HTTP proxy too.
        format!("http://{socks}"),
    ];
    let certificate = files.certificate();
    let usual = ["--cacert", &certificate, "-4", "-f"];
    for (number, proxy) in open.iter().enumerate() {
        for (scheme, url) in urls.iter().enumerate() {
            let got = web.path("got");
            let file = format!("{url}/file");
            let (well, text) = run(&[&usual[..], &["-x", proxy, "-o", got.to_str().unwrap(), &file]].concat());
            assert!(well, "{proxy} {url}: {text}");
            assert!(
                std::fs::read(&got).unwrap() == pattern(12, LEN),
                "{proxy} {url}: garbled"
            );
            let name = format!("up-{number}-{scheme}");
            let (source, to) = (web.name("file"), format!("{url}/{name}"));
            let (well, text) = run(&[&usual[..], &["-x", proxy, "-T", &source, &to]].concat());
            assert!(well, "{proxy} {url}: {text}");
            assert!(
                std::fs::read(web.path(&name)).unwrap() == pattern(12, LEN),
                "{proxy} {url}: upload garbled"
            );
        }
    }
    // The forms of a request that go through the HTTP inbound as a request, not as a tunnel.
    let proxy = format!("http://{http}");
    let file = format!("{}/file", urls[0]);
    let forms: [&[&str]; 5] = [
        &["--proxytunnel"],
        &["-0"],
        &["-H", "Connection: close", "--proxy-header", "Proxy-Connection: close"],
        &["--proxy-header", "Proxy-Connection: keep-alive"],
        &["-H", "Expect: 100-continue", "--data-binary", "x", "-X", "GET"],
    ];
    for form in forms {
        // Twice in one run: the second asks on the same connection, if that is kept.
        let (first, second) = (web.name("one"), web.name("two"));
        let twice = ["-x", &proxy, "-o", &first, &file, "-o", &second, &file];
        let (well, text) = run(&[&usual[..], form, &twice].concat());
        assert!(well, "{form:?}: {text}");
        for got in ["one", "two"] {
            assert!(
                std::fs::read(web.path(got)).unwrap() == pattern(12, LEN),
                "{form:?}: garbled"
            );
            std::fs::remove_file(web.path(got)).unwrap();
        }
    }
    let status = ["-o", "/dev/null", "-w", "%{http_code} %{http_connect}"];
    for (scheme, url) in urls.iter().enumerate() {
        for wrong in ["", "someone:secret@", "someone:@"] {
            let proxy = format!("http://{wrong}{closed_http}");
            let (_, text) = run(&[&usual[..2], &["-x", &proxy], &status[..], &[url.as_str()]].concat());
            let want = ["407 000", "000 407"][scheme];
            assert!(text.starts_with(want), "{proxy} {url}: {text}");
            let proxy = format!("socks5h://{wrong}{closed_socks}");
            let (well, text) = run(&[&usual[..2], &["-x", &proxy], &status[..], &[url.as_str()]].concat());
            assert!(!well && text.starts_with("000"), "{proxy} {url}: {text}");
        }
    }
}
