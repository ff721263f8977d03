//! Users come and go while they are connected: every protocol, and every way to be carried.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_v2ray::{UserId, trojan};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::Server;
use crate::settings::{Account, NewAccount, Settings};

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const PSK: &str = "AAECAwQFBgcICQoLDA0ODw==";
const UPSK: &str = "ICEiIyQlJicoKSorLC0uLw==";
const EMAIL: &str = "User@x.test";

/// A protocol, what it runs over, and what a client needs to use it.
struct Row {
    name: &'static str,
    inbound: String,
    outbound: String,
    account: NewAccount,
    udp: bool,
}

fn rows() -> Vec<Row> {
    let id = UserId::parse(ID).unwrap();
    let vnext = |protocol: &str, user: &str| {
        format!(
            r#""protocol": "{protocol}", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": PORT, "users": [{user}]}}]}}"#
        )
    };
    let servers = |protocol: &str, more: &str| {
        format!(
            r#""protocol": "{protocol}", "settings": {{"servers": [{{"address": "127.0.0.1", "port": PORT, {more}}}]}}"#
        )
    };
    let vless = |name, stream: &str| Row {
        name,
        inbound: format!(
            r#""protocol": "vless", "settings": {{"clients": [{{"id": "{FIRST}"}}], "decryption": "none"}}{stream}"#
        ),
        outbound: vnext("vless", &format!(r#"{{"id": "{ID}", "encryption": "none"}}"#)) + stream,
        account: NewAccount::Vless(id, Default::default(), Default::default()),
        udp: true,
    };
    let vmess = |name, mux: &str| Row {
        name,
        inbound: format!(r#""protocol": "vmess", "settings": {{"clients": [{{"id": "{FIRST}"}}]}}"#),
        outbound: vnext("vmess", &format!(r#"{{"id": "{ID}"}}"#)) + mux,
        account: NewAccount::Vmess(id),
        udp: true,
    };
    let login = r#"{"user": "name", "pass": "right"}"#;
    let account = || {
        NewAccount::Login(Account {
            user: "name".into(),
            pass: "right".into(),
        })
    };
    vec![
        vless("vless", ""),
        vless("vless over ws", r#", "streamSettings": {"network": "ws"}"#),
        vless(
            "vless over grpc",
            r#", "streamSettings": {"network": "grpc", "grpcSettings": {"serviceName": "s"}}"#,
        ),
        vless(
            "vless over xhttp",
            r#", "streamSettings": {"network": "xhttp", "xhttpSettings": {"path": "/x"}}"#,
        ),
        vmess("vmess", ""),
        vmess("vmess with mux", r#", "mux": {"enabled": true, "concurrency": 8}"#),
        Row {
            name: "trojan",
            inbound: r#""protocol": "trojan", "settings": {"clients": [{"password": "first"}]}"#.into(),
            outbound: servers("trojan", r#""password": "right""#),
            account: NewAccount::Trojan(trojan::Key::of_password("right")),
            udp: true,
        },
        Row {
            name: "shadowsocks",
            inbound: r#""protocol": "shadowsocks", "settings": {"method": "aes-128-gcm", "password": "first", "network": "tcp,udp"}"#
                .into(),
            outbound: servers("shadowsocks", r#""method": "aes-128-gcm", "password": "right""#),
            account: NewAccount::ShadowsocksPassword(None, "right".into()),
            udp: true,
        },
        Row {
            name: "shadowsocks 2022",
            inbound: format!(
                r#""protocol": "shadowsocks", "settings": {{"method": "2022-blake3-aes-128-gcm", "password": "{PSK}",
                    "clients": [{{"password": "{PSK}", "email": "first"}}], "network": "tcp,udp"}}"#
            ),
            outbound: servers(
                "shadowsocks",
                &format!(r#""method": "2022-blake3-aes-128-gcm", "password": "{PSK}:{UPSK}""#),
            ),
            account: NewAccount::ShadowsocksPassword(None, UPSK.into()),
            udp: true,
        },
        Row {
            name: "socks",
            inbound: r#""protocol": "socks", "settings": {"auth": "password", "accounts": [{"user": "first", "pass": "x"}], "udp": true}"#
                .into(),
            outbound: servers("socks", &format!(r#""users": [{login}]"#)),
            account: account(),
            udp: true,
        },
        Row {
            name: "http",
            inbound: r#""protocol": "http", "settings": {"accounts": [{"user": "first", "pass": "x"}]}"#.into(),
            outbound: servers("http", &format!(r#""users": [{login}]"#)),
            account: account(),
            udp: false,
        },
    ]
}

async fn start(text: &str) -> Server {
    Server::start(Settings::of_text(text)).await.unwrap()
}

/// A server with an inbound for each row, and one that takes clients of SOCKS there.
async fn servers(rows: &[Row]) -> (Server, Server) {
    let each = |one: &Row| {
        let Row { name, inbound, .. } = one;
        format!(r#"{{"tag": "{name}", "listen": "127.0.0.1", "port": 0, {inbound}}}"#)
    };
    let inbounds: Vec<_> = rows.iter().map(each).collect();
    let level = r#"{"statsUserUplink": true, "statsUserDownlink": true, "statsUserOnline": true}"#;
    let server = start(&format!(
        r#"{{"stats": {{}}, "policy": {{"levels": {{"0": {level}}}}}, "inbounds": [{},
            {{"tag": "door", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door", "settings": {{"address": "192.0.2.1", "port": 9}}}}],
            "outbounds": [{{"tag": "direct", "protocol": "freedom"}}],
            "routing": {{"rules": [{{"ip": ["127.0.0.0/8"], "outboundTag": "direct"}}]}}}}"#,
        inbounds.join(", ")
    ))
    .await;
    let inbound = |one: &Row| {
        let name = one.name;
        format!(
            r#"{{"tag": "{name}", "listen": "127.0.0.1", "port": 0, "protocol": "socks", "settings": {{"udp": true}}}}"#
        )
    };
    let outbound = |one: &Row| {
        let port = server.addresses(one.name)[0].port().to_string();
        format!(r#"{{"tag": "{}", {}}}"#, one.name, one.outbound.replace("PORT", &port))
    };
    let rule = |one: &Row| {
        let name = one.name;
        format!(r#"{{"inboundTag": ["{name}"], "outboundTag": "{name}"}}"#)
    };
    let list = |part: &dyn Fn(&Row) -> String| rows.iter().map(part).collect::<Vec<_>>().join(", ");
    let client = start(&format!(
        r#"{{"inbounds": [{}], "outbounds": [{}], "routing": {{"rules": [{}]}}}}"#,
        list(&inbound),
        list(&outbound),
        list(&rule)
    ))
    .await;
    (server, client)
}

/// Targets that send back what they get: of streams and of datagrams.
async fn echo() -> [SocketAddr; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addresses = [listener.local_addr().unwrap(), socket.local_addr().unwrap()];
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.into_split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    addresses
}

/// Asks a SOCKS server, and gives the address that it answers with.
async fn ask(proxy: SocketAddr, command: u8, target: SocketAddr) -> (TcpStream, SocketAddr) {
    let mut tcp = TcpStream::connect(proxy).await.unwrap();
    let SocketAddr::V4(target) = target else {
        panic!("{target}")
    };
    let mut asked = vec![5, 1, 0, 5, command, 0, 1];
    asked.extend(target.ip().octets());
    asked.extend(target.port().to_be_bytes());
    tcp.write_all(&asked).await.unwrap();
    let mut answer = [0; 12];
    tcp.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 0]);
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    (tcp, SocketAddr::new(proxy.ip(), port))
}

/// A stream that the target has sent back a word and more on, so much that the kernel carries it where it can.
async fn stream(proxy: SocketAddr, target: SocketAddr, patience: Duration) -> Option<TcpStream> {
    let (mut tcp, _) = timeout(Duration::from_secs(10), ask(proxy, 1, target)).await.ok()?;
    let speaking = async {
        tcp.write_all(b"word").await.ok()?;
        let mut word = [0; 4];
        tcp.read_exact(&mut word).await.ok()?;
        let (mut read, mut write) = tcp.split();
        let sent = vec![7; 256 << 10];
        let mut back = vec![0; sent.len()];
        let (sent, read) = tokio::join!(write.write_all(&sent), read.read_exact(&mut back));
        sent.and(read.map(drop)).ok()
    };
    let spoken = timeout(patience, speaking).await;
    spoken.ok().flatten().map(|()| tcp)
}

/// Datagrams by a SOCKS server.
struct Datagrams {
    _control: TcpStream,
    socket: UdpSocket,
    target: SocketAddr,
}

impl Datagrams {
    async fn begin(proxy: SocketAddr, target: SocketAddr) -> Datagrams {
        let (control, relay) = ask(proxy, 3, "0.0.0.0:0".parse().unwrap()).await;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(relay).await.unwrap();
        Datagrams {
            _control: control,
            socket,
            target,
        }
    }

    /// Whether the target answers.
    async fn answers(&self, patience: Duration) -> bool {
        let SocketAddr::V4(target) = self.target else {
            return false;
        };
        let mut whole = vec![0, 0, 0, 1];
        whole.extend(target.ip().octets());
        whole.extend(target.port().to_be_bytes());
        whole.extend(b"word");
        let until = Instant::now() + patience;
        let mut buffer = [0; 64];
        // What was sent before may still be on its way.
        while self.socket.try_recv(&mut buffer).is_ok() {}
        while Instant::now() < until {
            self.socket.send(&whole).await.unwrap();
            if let Ok(Ok(_)) = timeout(patience.min(Duration::from_millis(500)), self.socket.recv(&mut buffer)).await {
                return true;
            }
        }
        false
    }
}

const LONG: Duration = Duration::from_secs(10);
/// How long nothing comes before it is believed that nothing will.
const SHORT: Duration = Duration::from_millis(300);

async fn a_user_comes_and_goes(row: &Row, control: Control, proxy: SocketAddr, [tcp, udp]: [SocketAddr; 2]) {
    let name = row.name;
    let email = format!("{EMAIL}.{name}");
    // A carrier of a mux that is refused is not closed at once, and takes the streams that follow.
    let each_alone = !name.contains("mux");
    if each_alone {
        assert!(stream(proxy, tcp, SHORT).await.is_none(), "{name}: a stranger");
    }
    let user = NewUser {
        email: email.clone(),
        level: 0,
        account: row.account.clone(),
    };
    control.add_user(name, &user).unwrap();
    let again = control.add_user(name, &user).unwrap_err();
    assert_eq!(again.to_string(), format!("User {email} already exists."), "{name}");
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(
            stream(proxy, tcp, LONG)
                .await
                .unwrap_or_else(|| panic!("{name}: a user")),
        );
    }
    let datagrams = match row.udp {
        true => Some(Datagrams::begin(proxy, udp).await),
        false => None,
    };
    if let Some(datagrams) = &datagrams {
        assert!(datagrams.answers(LONG).await, "{name}: datagrams");
    }
    let person = control.stats().people().find(&email).unwrap();
    assert!(
        person.connections() >= 2 + u32::from(row.udp),
        "{name}: {}",
        person.connections()
    );
    for way in ["uplink", "downlink"] {
        let counter = format!("user>>>{email}>>>traffic>>>{way}");
        // What has come back may have been on its way before it was counted.
        let until = Instant::now() + LONG;
        loop {
            let counted = control.stats().get(&counter).unwrap().get();
            if counted >= 512 << 10 {
                break;
            }
            assert!(Instant::now() < until, "{name} {way}: {counted}");
            sleep(Duration::from_millis(5)).await;
        }
    }
    let since = Instant::now();
    control.remove_user(name, &email.to_uppercase()).unwrap();
    for mut one in streams {
        let ended = timeout(Duration::from_secs(1).saturating_sub(since.elapsed()), async {
            while let Ok(1..) = one.read(&mut [0; 64]).await {}
        });
        assert!(ended.await.is_ok(), "{name}: a stream goes on");
    }
    while person.connections() > 0 {
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{name}: {} go on",
            person.connections()
        );
        sleep(Duration::from_millis(5)).await;
    }
    if let Some(datagrams) = &datagrams {
        assert!(
            !datagrams.answers(SHORT).await,
            "{name}: datagrams of somebody who is gone"
        );
    }
    assert!(
        stream(proxy, tcp, SHORT).await.is_none(),
        "{name}: somebody who is gone"
    );
    let gone = control.remove_user(name, &email).unwrap_err();
    assert_eq!(gone.to_string(), format!("User {email} not found."), "{name}");
    // Who comes back is a user again.
    control.add_user(name, &user).unwrap();
    if !each_alone {
        return;
    }
    assert!(stream(proxy, tcp, LONG).await.is_some(), "{name}: who is back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_come_and_go_while_they_are_connected() {
    let rows = rows();
    let (server, client) = servers(&rows).await;
    let targets = echo().await;
    let mut running = tokio::task::JoinSet::new();
    for row in rows {
        let (control, proxy) = (server.control(), client.addresses(row.name)[0]);
        running.spawn(async move { a_user_comes_and_goes(&row, control, proxy, targets).await });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn what_is_asked_of_the_wrong_inbound_is_refused_in_words() {
    let rows = rows();
    let (server, _client) = servers(&rows[..1]).await;
    let control = server.control();
    let user = |account| NewUser {
        email: "a".into(),
        level: 0,
        account,
    };
    let vless = || user(rows[0].account.clone());
    for (refused, words) in [
        (control.add_user("nowhere", &vless()), "handler not found: nowhere"),
        (
            control.add_user("door", &vless()),
            "not supported: users of an inbound that knows none",
        ),
        (
            control.add_user("vless", &user(rows[4].account.clone())),
            "not supported: this inbound knows its users by ids of VLESS",
        ),
        (control.remove_user("vless", ""), "Email must not be empty."),
        (control.remove_user("vless", "a"), "User a not found."),
        (control.remove_user("nowhere", "a"), "handler not found: nowhere"),
    ] {
        assert_eq!(refused.unwrap_err().to_string(), words);
    }
    control.add_user("vless", &vless()).unwrap();
    // The same id under another name.
    let other = NewUser {
        email: "b".into(),
        ..vless()
    };
    let taken = control.add_user("vless", &other).unwrap_err();
    assert_eq!(taken.to_string(), "User b already exists.");
    assert_eq!(control.count_users("vless").unwrap(), 1);
    let name = UserName {
        email: "a".into(),
        level: 0,
    };
    assert_eq!(control.users("vless").unwrap(), std::slice::from_ref(&name));
    assert_eq!(control.user("vless", "A").unwrap(), name);
    assert_eq!(control.user("vless", "b").unwrap_err().to_string(), "User b not found.");
    assert!(control.online_users(Show::AsTheyAre).is_empty());
}
