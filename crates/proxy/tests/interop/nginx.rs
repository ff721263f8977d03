//! nginx in front of us, chosen by path and by server name, and behind us, reached through fallbacks.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::common::{exchange, pattern, target, within};
use crate::curl;
use crate::programs::{Endpoint, Place, Process, Program, Running, have, own_loopback, said};
use crate::ways::{Files, PROTOCOLS, TROJAN, VLESS, Way, config, door, freedom, placed};

/// Where nginx is: not every PATH holds it.
fn program() -> &'static str {
    let usual = "/usr/sbin/nginx";
    if Path::new(usual).exists() { usual } else { "nginx" }
}

/// True if nginx is there, with what routes by server name.
pub(crate) fn there() -> bool {
    have(program(), &["-v"]) && (stream_module().is_some() || has_stream())
}

fn has_stream() -> bool {
    let (_, built) = said(&Command::new(program()).arg("-V").output().unwrap());
    let found = built.split_whitespace().any(|option| option == "--with-stream");
    assert!(
        found || std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
        "SEALWAY_REQUIRE_PEERS=1, but nginx has no stream module (scripts/install-peers)"
    );
    if !found {
        eprintln!("SKIPPED: nginx has no stream module");
    }
    found
}

/// The module as a file, where it is not built in.
fn stream_module() -> Option<String> {
    let folders = [
        "/usr/lib/nginx/modules",
        "/usr/lib64/nginx/modules",
        "/usr/share/nginx/modules",
    ];
    let files = folders.map(|folder| format!("{folder}/ngx_stream_module.so"));
    files.into_iter().find(|file| Path::new(file).exists())
}

/// Starts nginx with the contents of its blocks `http` and `stream`, and waits until it listens.
pub(crate) async fn start(place: &Place, http: &str, stream: &str, at: &[Endpoint]) -> Process {
    let load = stream_module().map_or(String::new(), |file| format!("load_module {file};\n"));
    let dir = place.name("");
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {dir}temp-{name};\n"))
        .collect();
    // Said on the same level, it would end a log that is asked for.
    let quiet = if http.contains("access_log ") {
        ""
    } else {
        "access_log off;"
    };
    let text = format!(
        "{load}daemon off; master_process off; pid {dir}pid; error_log {dir}error.log info;
        events {{ worker_connections 512; }}
        http {{
            {quiet} default_type text/plain; client_max_body_size 0;
            {temporary}
            {http}
        }}
        stream {{ {stream} }}\n"
    );
    let file = place.write("nginx.conf", &text);
    let arguments = ["-e", &place.name("error.log"), "-p", &dir, "-c"].map(str::to_owned);
    let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    arguments.push(file.as_os_str());
    let mut process = Process::start(program(), &arguments, &[], place);
    process.listens(at).await;
    process
}

/// A client of ours with one door for each outbound, that comes from an address of its own.
struct Client {
    from: IpAddr,
    doors: Vec<SocketAddr>,
    _running: Running,
    _place: Place,
}

impl Client {
    async fn start(target: SocketAddr, outbounds: Vec<Value>) -> Client {
        let (from, place) = (own_loopback(), Place::new());
        let (mut inbounds, mut rules, mut doors) = (vec![], vec![], vec![]);
        let mut own = Vec::new();
        for (number, mut outbound) in outbounds.into_iter().enumerate() {
            let at = place.at(place.port());
            inbounds.push(placed(door("tcp", target), &format!("door{number}"), at));
            outbound["tag"] = json!(format!("way{number}"));
            outbound["sendThrough"] = json!(from);
            own.push(outbound);
            rules.push(json!({"inboundTag": [format!("door{number}")], "outboundTag": format!("way{number}")}));
            doors.push(at);
        }
        place.let_go();
        let running = Program::Ours.run(&place, &config(inbounds, own, rules)).await;
        Client {
            from,
            doors,
            _running: running,
            _place: place,
        }
    }

    /// Small and large exchanges through every door.
    async fn exchange(&self, what: &str) {
        for door in &self.doors {
            for (up, down) in [(1, 1), (65536, 65536), (4 << 20, 4 << 20)] {
                let stream = TcpStream::connect(door).await.unwrap();
                within(&format!("{what}: {up} up, {down} down"), exchange(stream, up, down)).await;
            }
        }
    }
}

fn tls_lines(files: &Files) -> String {
    let (certificate, key) = (files.certificate(), files.key());
    format!("ssl_certificate {certificate}; ssl_certificate_key {key};")
}

/// nginx ends TLS, leads our paths to us by TCP and by a unix socket, and answers all others itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_front_by_path() {
    if !(there() && curl::there()) {
        return;
    }
    let (files, ours, front) = (Files::new(), Place::new(), Place::new());
    let ways = [
        Way::new(VLESS, "ws", false),
        Way::new(PROTOCOLS[1], "ws", false),
        Way::new(VLESS, "httpupgrade", false),
    ];
    let sockets = [
        format!("{}:{}", ours.host, ours.port()),
        format!("unix:{}", ours.name("ws.sock")),
        format!("{}:{}", ours.host, ours.port()),
    ];
    let mut inbounds = Vec::new();
    let mut locations = String::new();
    for (number, (way, socket)) in ways.iter().zip(&sockets).enumerate() {
        let mut inbound = way.inbound(&files);
        inbound["tag"] = json!(format!("in{number}"));
        match socket.strip_prefix("unix:") {
            Some(path) => inbound["listen"] = json!(path),
            None => {
                let at: SocketAddr = socket.parse().unwrap();
                inbound = placed(inbound, &format!("in{number}"), at);
            }
        }
        inbound["streamSettings"][format!("{}Settings", way.network)]["path"] = json!(format!("/way{number}"));
        inbound["streamSettings"]["sockopt"] = json!({"trustedXForwardedFor": ["X-Forwarded-For"]});
        inbounds.push(inbound);
        locations.push_str(&format!(
            "location = /way{number} {{
                proxy_pass http://{socket}{colon}; proxy_http_version 1.1; proxy_read_timeout 300s;
                proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            }}\n",
            colon = if socket.starts_with("unix:") { ":" } else { "" },
        ));
    }
    let port = front.port();
    let tls = tls_lines(&files);
    let host = front.host;
    let http = format!(
        "server {{ listen {host}:{port} ssl; server_name server.example; {tls}
        {locations} location / {{ return 200 \"a page of nginx\\n\"; }} }}"
    );
    ours.let_go();
    front.let_go();
    let mut server = config(inbounds, vec![freedom()], vec![]);
    server["log"]["access"] = json!(ours.name("access.log"));
    let _server = Program::Ours.run(&ours, &server).await;
    let _front = start(&front, &http, "", &[Endpoint::Tcp(front.at(port))]).await;
    let outbounds = ways.iter().enumerate().map(|(number, way)| {
        let way = Way {
            tls: true,
            ..way.clone()
        };
        let mut outbound = way.outbound(front.at(port), &files);
        outbound["streamSettings"][format!("{}Settings", way.network)]["path"] = json!(format!("/way{number}"));
        outbound
    });
    let client = Client::start(target().await, outbounds.collect()).await;
    client.exchange("behind nginx by path").await;
    for number in 0..ways.len() {
        // The client as nginx tells it, not nginx.
        let want = format!("from {}:0 accepted", client.from);
        let own = format!("[in{number} >> direct]");
        ours.line("access.log", |line| line.contains(&want) && line.contains(&own))
            .await;
    }
    let at = front.at(port);
    let page = curl::get(&files, client.from, "server.example", at, "/elsewhere", &[]);
    assert_eq!(page, "a page of nginx\n");
    // A path of ours without an upgrade is refused by us.
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    assert_eq!(
        curl::get(&files, client.from, "server.example", at, "/way0", &status),
        "400"
    );
}

/// nginx reads the server name without opening TLS, and announces the client by the PROXY protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_front_by_name() {
    if !(there() && curl::there()) {
        return;
    }
    let (files, ours, front) = (Files::new(), Place::new(), Place::new());
    let way = Way::new(VLESS, "tcp", true);
    let at = ours.at(ours.port());
    let mut inbound = placed(way.inbound(&files), "in", at);
    inbound["streamSettings"]["tcpSettings"] = json!({"acceptProxyProtocol": true});
    let (port, page_port, host) = (front.port(), front.port(), front.host);
    let tls = tls_lines(&files);
    let http = format!(
        "server {{ listen {host}:{page_port} ssl proxy_protocol; {tls}
        location / {{ return 200 \"a page for $proxy_protocol_addr\\n\"; }} }}"
    );
    let stream = format!(
        "map $ssl_preread_server_name $to {{ server.example {at}; default {host}:{page_port}; }}
        server {{ listen {host}:{port}; ssl_preread on; proxy_protocol on; proxy_pass $to; }}"
    );
    ours.let_go();
    front.let_go();
    let mut server = config(vec![inbound], vec![freedom()], vec![]);
    server["log"]["access"] = json!(ours.name("access.log"));
    let _server = Program::Ours.run(&ours, &server).await;
    let _front = start(&front, &http, &stream, &[Endpoint::Tcp(front.at(port))]).await;
    let client = Client::start(target().await, vec![way.outbound(front.at(port), &files)]).await;
    client.exchange("behind nginx by name").await;
    let want = format!("from {}:", client.from);
    ours.line("access.log", |line| {
        line.contains(&want) && line.contains(" accepted tcp:")
    })
    .await;
    let page = curl::get(&files, client.from, "other.example", front.at(port), "/", &[]);
    assert_eq!(page, format!("a page for {}\n", client.from));
}

/// We end TLS, and whoever is no user of ours is led to nginx: by path, ALPN and name, by TCP and by a unix socket, with
/// the client's address told in both versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind() {
    if !(there() && curl::there()) {
        return;
    }
    for protocol in [VLESS, TROJAN] {
        behind_inbound_of(protocol).await;
    }
}

async fn behind_inbound_of(protocol: (&'static str, &'static str)) {
    let (files, ours, back) = (Files::new(), Place::new(), Place::new());
    let host = back.host;
    let (page, two, named) = (back.port(), back.port(), back.port());
    let socket = back.name("b.sock");
    back.write("file", "");
    std::fs::write(back.path("file"), pattern(11, 5 << 20)).unwrap();
    let root = back.name("");
    let log = back.name("who.log");
    let says = |name: &str| format!("return 200 \"{name} $proxy_protocol_addr $request_uri\\n\";");
    let http = format!(
        "log_format who '$proxy_protocol_addr:$proxy_protocol_port $request_uri'; access_log {log} who;
        server {{ listen {host}:{page} proxy_protocol; root {root};
            location = /file {{ }} location /put/ {{ dav_methods PUT; create_full_put_path on; }}
            location / {{ {} }} }}
        server {{ listen unix:{socket} proxy_protocol; location / {{ {} }} }}
        server {{ listen {host}:{two} http2 proxy_protocol; location / {{ {} }} }}
        server {{ listen {host}:{named}; location / {{ return 200 \"named $remote_addr\\n\"; }} }}",
        says("page"),
        says("path"),
        says("two"),
    );
    let way = Way::new(protocol, "tcp", true);
    let port = ours.port();
    let mut inbound = placed(way.inbound(&files), "in", ours.at(port));
    inbound["settings"]["fallbacks"] = json!([
        {"dest": format!("{host}:{page}"), "xver": 1},
        {"path": "/path", "dest": socket, "xver": 2},
        {"alpn": "h2", "dest": format!("{host}:{two}"), "xver": 2},
        {"name": "other.example", "dest": format!("{host}:{named}")},
    ]);
    inbound["streamSettings"]["tlsSettings"]["alpn"] = json!(["h2", "http/1.1"]);
    ours.let_go();
    back.let_go();
    let listens = [
        Endpoint::Tcp(back.at(page)),
        Endpoint::Tcp(back.at(two)),
        Endpoint::Tcp(back.at(named)),
        Endpoint::Unix(socket.clone()),
    ];
    let _back = start(&back, &http, "", &listens).await;
    let _server = Program::Ours
        .run(&ours, &config(vec![inbound], vec![freedom()], vec![]))
        .await;
    let client = Client::start(target().await, vec![way.outbound(ours.at(port), &files)]).await;
    let from = client.from;
    let get = |name: &str, path: &str, more: &[&str]| curl::get(&files, from, name, ours.at(port), path, more);
    let one = "--http1.1";
    assert_eq!(get("server.example", "/any?x", &[one]), format!("page {from} /any?x\n"));
    assert_eq!(
        get("server.example", "/path?x", &[one]),
        format!("path {from} /path?x\n")
    );
    assert_eq!(
        get("server.example", "/path", &["--http2"]),
        format!("two {from} /path\n")
    );
    assert_eq!(get("other.example", "/any", &[one]), "named 127.0.0.1\n");
    // A name that lacks the path has that of the entry without a name.
    assert_eq!(get("other.example", "/path", &[one]), format!("path {from} /path\n"));
    back.line("who.log", |line| {
        line.starts_with(&format!("{from}:")) && line.ends_with(" /any?x")
    })
    .await;
    // Bodies both ways.
    let got = back.path("got");
    get("server.example", "/file", &[one, "-o", got.to_str().unwrap()]);
    assert!(
        std::fs::read(&got).unwrap() == pattern(11, 5 << 20),
        "a page of 5 MiB garbled"
    );
    get(
        "server.example",
        "/put/up",
        &[one, "-T", back.path("file").to_str().unwrap()],
    );
    assert!(
        std::fs::read(back.path("put/up")).unwrap() == pattern(11, 5 << 20),
        "an upload of 5 MiB garbled"
    );
    // And users come in by the same door.
    client.exchange("in front of nginx").await;
}
