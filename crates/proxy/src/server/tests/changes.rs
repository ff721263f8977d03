//! Changes of a server that runs.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_v2ray::{Address, Destination};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, UdpSocket, UnixStream};
use tokio::time::timeout;

use super::*;
use crate::control::Refusal;
use crate::routes::Traits;
use crate::settings::{Listen, UnixName};

const LIMIT: Duration = Duration::from_secs(10);

/// Says its name to everybody, then what it is told.
async fn target(name: &'static [u8; 1]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                tcp.write_all(name).await.unwrap();
                let (mut read, mut write) = tcp.split();
                tokio::io::copy(&mut read, &mut write).await.ok();
            });
        }
    });
    address
}

/// A door whose connections go where the outbound `tag` redirects them.
fn door(tag: &str, port: u16) -> String {
    DOOR.replace("\"in\"", &format!("{tag:?}"))
        .replace("\"port\": 0", &format!("\"port\": {port}"))
}

/// An outbound that leads to this target.
fn out(tag: &str, to: SocketAddr) -> String {
    format!(r#"{{"tag": "{tag}", "protocol": "freedom", "settings": {{"redirect": "{to}"}}}}"#)
}

fn whole(inbounds: &[String], outbounds: &[String], rules: &str) -> Settings {
    let (inbounds, outbounds) = (inbounds.join(", "), outbounds.join(", "));
    Settings::of_text(&format!(
        r#"{{"inbounds": [{inbounds}], "outbounds": [{outbounds}], "routing": {rules}}}"#
    ))
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let [port] = sealway_net::ports::free().unwrap();
    port
}

/// Who answers behind a door, and the connection. `None`: nobody does.
async fn met(door: SocketAddr) -> Option<(u8, TcpStream)> {
    let mut client = TcpStream::connect(door).await.ok()?;
    let name = timeout(LIMIT, client.read_u8()).await.unwrap().ok()?;
    Some((name, client))
}

async fn name(door: SocketAddr) -> Option<u8> {
    Some(met(door).await?.0)
}

/// Whether a connection still carries both ways.
async fn is_alive(client: &mut TcpStream) -> bool {
    client.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    timeout(LIMIT, client.read_exact(&mut answer)).await.unwrap().is_ok() && &answer == b"ping"
}

#[tokio::test]
async fn inbounds_and_outbounds_come_and_go() {
    let (a, b) = (target(b"a").await, target(b"b").await);
    let only = whole(&[door("in", 0)], &[out("a", a)], "{}");
    let server = Server::start(only.clone()).await.unwrap();
    let control = server.control();
    let at = server.addresses("in")[0];
    let (_, mut kept) = met(at).await.unwrap();
    let other = whole(&[door("other", 0)], &[out("b", b)], "{}");
    control.add_inbound(other.inbounds[0].clone()).await.unwrap();
    let there = server.addresses("other")[0];
    assert_eq!(name(there).await, Some(b'a'));
    let refused = control.add_inbound(other.inbounds[0].clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "existing tag found: other");
    // One that cannot be opened leaves no trace.
    let mut taken = other.inbounds[0].clone();
    (taken.tag, taken.listen) = ("third".into(), vec![Listen::Port(at)]);
    assert!(matches!(control.add_inbound(taken).await, Err(Refusal::Unusable(_))));
    assert_eq!(control.inbounds().len(), 2);
    control.remove_inbound("other").await.unwrap();
    assert_eq!(name(there).await, None);
    for unknown in ["other", ""] {
        let refused = control.remove_inbound(unknown).await.unwrap_err();
        assert_eq!(refused.to_string(), "not enough information for making a decision");
    }
    // The default goes: nothing goes out by another, until another takes its place.
    control.add_outbound(other.outbounds[0].clone()).await.unwrap();
    let refused = control.add_outbound(other.outbounds[0].clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "existing tag found: b");
    assert_eq!(name(at).await, Some(b'a'));
    control.remove_outbound("a").await.unwrap();
    assert_eq!(name(at).await, None);
    control.add_outbound(only.outbounds[0].clone()).await.unwrap();
    assert_eq!(name(at).await, Some(b'a'));
    let tags: Vec<_> = control.outbounds().iter().map(|one| one.tag.clone()).collect();
    assert_eq!(tags, ["a", "b"]);
    assert!(is_alive(&mut kept).await);
    drop(kept);
    assert!(server.shutdown(LIMIT).await);
    assert!(control.remove_rule("x").await.is_err(), "a server that has stopped");
}

#[tokio::test]
async fn rules_come_and_go() {
    let (a, b) = (target(b"a").await, target(b"b").await);
    let settings = whole(&[door("in", 0)], &[out("a", a), out("b", b)], "{}");
    let server = Server::start(settings).await.unwrap();
    let control = server.control();
    let at = server.addresses("in")[0];
    let rule = |name: &str, to: &str| Rule {
        name: name.into(),
        inbound_tags: vec!["in".into()],
        outbound_tag: to.into(),
        ..Rule::default()
    };
    let traits = Traits {
        inbound: "in".into(),
        ..Traits::of(Destination::tcp(Address::parse("one.test").unwrap(), 443))
    };
    assert!(matches!(control.test_route(&traits).await, Err(Refusal::NoClue)));
    let (_, mut kept) = met(at).await.unwrap();
    control.add_rules(vec![rule("r", "b")], Vec::new(), true).await.unwrap();
    assert_eq!(name(at).await, Some(b'b'));
    let routed = control.test_route(&traits).await.unwrap();
    assert_eq!((&*routed.rule, &*routed.outbound), ("r", "b"));
    let again = control
        .add_rules(vec![rule("q", "a"), rule("r", "a")], Vec::new(), true)
        .await;
    assert_eq!(again.unwrap_err().to_string(), "duplicate ruleTag r");
    assert_eq!(control.rules().len(), 1);
    // What rules lead to is gone: nobody else gets it.
    let b_out = control.outbounds()[1].clone();
    control.remove_outbound("b").await.unwrap();
    assert_eq!(name(at).await, None);
    control.add_outbound((*b_out).clone()).await.unwrap();
    assert_eq!(name(at).await, Some(b'b'));
    control
        .add_rules(vec![rule("s", "a")], Vec::new(), false)
        .await
        .unwrap();
    assert_eq!(control.rules()[0].name, "s");
    assert_eq!(name(at).await, Some(b'a'));
    control.remove_rule("s").await.unwrap();
    control.remove_rule("s").await.unwrap();
    assert_eq!(
        control.remove_rule("").await.unwrap_err().to_string(),
        "empty tag name!"
    );
    assert!(control.rules().is_empty() && is_alive(&mut kept).await);
}

#[tokio::test]
async fn balancers_are_overridden_and_stay_so() {
    let (a, b) = (target(b"a").await, target(b"b").await);
    let rules = r#"{"balancers": [{"tag": "both", "selector": ["o"]}],
        "rules": [{"inboundTag": ["in"], "balancerTag": "both"}]}"#;
    let settings = whole(&[door("in", 0)], &[out("oa", a), out("ob", b)], rules);
    let server = Server::start(settings.clone()).await.unwrap();
    let control = server.control();
    let at = server.addresses("in")[0];
    assert_eq!(control.balancer("both").unwrap().picks, ["oa", "ob"]);
    control.override_balancer("both", "ob").await.unwrap();
    // Numbers mean something else when an outbound is gone.
    control.remove_outbound("oa").await.unwrap();
    for _ in 0..5 {
        assert_eq!(name(at).await, Some(b'b'));
    }
    let state = control.balancer("both").unwrap();
    assert_eq!(
        (state.wanted.as_deref(), &*state.picks),
        (Some("ob"), &["ob".to_owned()][..])
    );
    for (tag, target) in [("none", "ob"), ("both", "none")] {
        let refused = control.override_balancer(tag, target).await.unwrap_err();
        assert_eq!(refused.to_string(), "cannot find tag");
    }
    control.override_balancer("both", "").await.unwrap();
    assert_eq!(control.balancer("both").unwrap().wanted, None);
}

#[tokio::test]
async fn the_whole_configuration_is_taken_up_or_nothing_of_it() {
    let (a, b) = (target(b"a").await, target(b"b").await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let [moved, to, gone] = [free_port(), free_port(), free_port()];
    let mut first = whole(
        &[door("in", 0), door("moved", moved), door("gone", gone), door("unix", 0)],
        &[out("a", a)],
        "{}",
    );
    first.inbounds[3].listen = vec![Listen::Unix(UnixName::Path(path.clone()), Some(0o600))];
    let server = Server::start(first.clone()).await.unwrap();
    let control = server.control();
    let at = server.addresses("in")[0];
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let (_, mut kept) = met(loopback(gone)).await.unwrap();
    let inbound = Arc::clone(&control.inbounds()[0]);

    // Wrong ones change nothing, and everything that is wrong is said.
    let mut wrong = whole(&[door("in", 0), door("new", to)], &[out("b", b)], "{}");
    wrong.rules = vec![Rule {
        networks: vec![sealway_v2ray::Network::Tcp],
        outbound_tag: "none".into(),
        ..Rule::default()
    }];
    let found = control.apply(wrong.clone()).await.unwrap_err();
    assert_eq!(
        found[0].to_string(),
        "routing.rules[0].outboundTag: there is no outbound with the tag \"none\""
    );
    wrong.rules.clear();
    // Somebody else has the last of these ports.
    let somebody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    wrong.inbounds.push(wrong.inbounds[1].clone());
    wrong.inbounds[2].tag = "taken".into();
    wrong.inbounds[2].listen = vec![Listen::Port(somebody.local_addr().unwrap())];
    let found = control.apply(wrong).await.unwrap_err();
    assert!(
        matches!(&found[..], [Error::Listen { place, .. }] if place == "inbounds[2]"),
        "{found:?}"
    );
    assert_eq!((name(at).await, name(loopback(gone)).await), (Some(b'a'), Some(b'a')));
    assert_eq!(name(loopback(to)).await, None);

    // The right one.
    let mut second = whole(
        &[door("in", 0), door("moved", to), door("unix", 0)],
        &[out("b", b)],
        "{}",
    );
    second.inbounds[2].listen = vec![Listen::Unix(UnixName::Path(path.clone()), Some(0o666))];
    let done = control.apply(second.clone()).await.unwrap();
    assert_eq!((done.opened, done.kept, done.closed), (1, 2, 2));
    assert_eq!(server.addresses("in"), [at], "what the system chose stays");
    assert_eq!(name(at).await, Some(b'b'));
    assert_eq!(name(loopback(to)).await, Some(b'b'));
    assert_eq!((name(loopback(moved)).await, name(loopback(gone)).await), (None, None));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    assert_eq!(UnixStream::connect(&path).await.unwrap().read_u8().await.unwrap(), b'b');
    assert!(is_alive(&mut kept).await, "it goes on by what it began with");
    let now = control.inbounds();
    assert!(Arc::ptr_eq(&now[0], &inbound), "what is the same is shared");
    // A port goes from one inbound to another without a moment in which nobody listens.
    second.inbounds[1].tag = "heir".into();
    let done = control.apply(second).await.unwrap();
    assert_eq!((done.opened, done.kept, done.closed), (0, 3, 0));
    assert_eq!(
        (name(loopback(to)).await, server.addresses("moved").len()),
        (Some(b'b'), 0)
    );
    drop(kept);
    assert!(server.shutdown(LIMIT).await && !path.exists());
}

#[tokio::test]
async fn datagrams_follow_a_changed_inbound() {
    let echo = |name: &'static [u8]| async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 64];
            while let Ok((_, from)) = socket.recv_from(&mut bytes).await {
                socket.send_to(name, from).await.unwrap();
            }
        });
        address
    };
    let (a, b) = (echo(b"a").await, echo(b"b").await);
    let with = |to: SocketAddr| {
        Settings::of_text(&format!(
            r#"{{"inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {}, "network": "udp"}}}}],
            "outbounds": [{{"protocol": "freedom"}}]}}"#,
            to.port()
        ))
    };
    let server = Server::start(with(a)).await.unwrap();
    let at = server.addresses("in")[0];
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let ask = async || {
        client.send_to(b"?", at).await.unwrap();
        let mut bytes = [0; 64];
        let (len, _) = timeout(LIMIT, client.recv_from(&mut bytes)).await.unwrap().unwrap();
        bytes[..len].to_vec()
    };
    assert_eq!(ask().await, b"a");
    let done = server.control().apply(with(b)).await.unwrap();
    assert_eq!((done.opened, done.kept, done.closed), (0, 1, 0));
    assert_eq!(ask().await, b"b");
}

#[tokio::test]
async fn a_certificate_is_read_again_though_no_setting_has_changed() {
    const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
    let a = target(b"a").await;
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("chain"), folder.path().join("key"));
    let write = || {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let digest = Sha256::digest(made.cert.der());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let before = write();
    let tls = format!(
        r#"{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "vless",
        "settings": {{"decryption": "none", "clients": [{{"id": "{ID}"}}]}}, "streamSettings": {{"security": "tls",
        "tlsSettings": {{"certificates": [{{"certificateFile": "{}", "keyFile": "{}"}}]}}}}}}"#,
        chain.display(),
        key.display()
    );
    let allow = format!(
        r#"{{"protocol": "freedom", "settings": {{"redirect": "{a}", "finalRules": [{{"action": "allow"}}]}}}}"#
    );
    let far = whole(&[tls], &[allow], "{}");
    let server = Server::start(far.clone()).await.unwrap();
    let at = server.addresses("in")[0];
    let near = async |pin: &str| {
        let out = format!(
            r#"{{"protocol": "vless", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {},
            "users": [{{"id": "{ID}", "encryption": "none"}}]}}]}}, "streamSettings": {{"security": "tls",
            "tlsSettings": {{"serverName": "a.test", "pinnedPeerCertSha256": "{pin}"}}}}}}"#,
            at.port()
        );
        Server::start(whole(&[door("in", 0)], &[out], "{}")).await.unwrap()
    };
    let old = near(&before).await;
    let (_, mut kept) = met(old.addresses("in")[0]).await.unwrap();
    let after = write();
    let new = near(&after).await;
    assert_eq!(name(new.addresses("in")[0]).await, None);
    let done = server.control().apply(far.clone()).await.unwrap();
    assert_eq!((done.opened, done.kept, done.closed), (0, 1, 0));
    assert_eq!(name(new.addresses("in")[0]).await, Some(b'a'));
    assert!(is_alive(&mut kept).await);
    // One that cannot be used leaves the last one where it is.
    std::fs::write(&key, "none").unwrap();
    let found = server.control().apply(far).await.unwrap_err();
    assert!(found[0].to_string().contains("certificates[0].keyFile"), "{found:?}");
    assert_eq!(name(new.addresses("in")[0]).await, Some(b'a'));
}

/// Whether a connection ends within a second.
async fn ends(client: &mut TcpStream) -> bool {
    let end = async { while let Ok(1..) = client.read(&mut [0; 64]).await {} };
    timeout(Duration::from_secs(1), end).await.is_ok()
}

#[tokio::test]
async fn users_that_are_gone_from_the_file_lose_their_connections() {
    use crate::settings::{NewAccount, NewUser};
    let id = |user: u8| format!("b831381d-6324-4d53-ad4f-8cda48b3080{user}");
    let a = target(b"a").await;
    // With e-mails, and two without.
    let emails = ["Gone@x", "stays@x", "added@x", "", ""];
    let far = |present: &[u8], path: &str| {
        let client = |user: &u8| {
            let email = emails[usize::from(*user)];
            format!(r#"{{"id": "{}", "email": "{email}"}}"#, id(*user))
        };
        let clients: Vec<_> = present.iter().map(client).collect();
        let inbound = format!(
            r#"{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "vless",
            "settings": {{"decryption": "none", "clients": [{}]}}, "streamSettings": {{"network": "ws",
            "wsSettings": {{"path": "{path}"}}}}}}"#,
            clients.join(", ")
        );
        let allow = format!(
            r#"{{"protocol": "freedom", "settings": {{"redirect": "{a}", "finalRules": [{{"action": "allow"}}]}}}}"#
        );
        whole(&[inbound], &[allow], "{}")
    };
    let server = Server::start(far(&[0, 1, 3, 4], "/")).await.unwrap();
    let control = server.control();
    let account = NewAccount::Vless(
        sealway_v2ray::UserId::parse(&id(2)).unwrap(),
        Default::default(),
        Default::default(),
    );
    let added = NewUser {
        email: emails[2].into(),
        level: 0,
        account,
    };
    control.add_user("in", &added).unwrap();
    let port = server.addresses("in")[0].port();
    let out = |user: u8, mux: bool| {
        format!(
            r#"{{"tag": "{user}{mux}", "protocol": "vless", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {port},
            "users": [{{"id": "{}", "encryption": "none"}}]}}]}}, "streamSettings": {{"network": "ws"}},
            "mux": {{"enabled": {mux}}}}}"#,
            id(user)
        )
    };
    let each = (0..5).flat_map(|user| [(user, false), (user, true)]);
    let outs: Vec<_> = each.clone().map(|(user, mux)| out(user, mux)).collect();
    let doors: Vec<_> = each
        .clone()
        .map(|(user, mux)| door(&format!("{user}{mux}"), 0))
        .collect();
    let rule = |(user, mux)| format!(r#"{{"inboundTag": ["{user}{mux}"], "outboundTag": "{user}{mux}"}}"#);
    let rules: Vec<_> = each.clone().map(rule).collect();
    let rules = format!(r#"{{"rules": [{}]}}"#, rules.join(", "));
    let near = Server::start(whole(&doors, &outs, &rules)).await.unwrap();
    let mut clients = Vec::new();
    for (user, mux) in each {
        let at = near.addresses(&format!("{user}{mux}"))[0];
        clients.push((user, mux, met(at).await.unwrap().1));
    }
    // A change that all of them outlive, as the same users.
    let same = far(&[4, 3, 2, 1, 0], "/other");
    control.apply(same).await.unwrap();
    for (user, mux, client) in &mut clients {
        assert!(is_alive(client).await, "{user} {mux}");
    }
    // It was an added one in the file; now it is neither.
    control.remove_user("in", emails[2]).unwrap();
    for (user, mux, client) in clients.iter_mut().filter(|(user, ..)| *user == 2) {
        assert!(ends(client).await, "{user} {mux}: removed after it came");
    }
    clients.retain(|(user, ..)| *user != 2);
    control.add_user("in", &added).unwrap();
    let person = control.stats().people().find("gone@x").unwrap();
    assert!(person.connections() >= 2);
    control.apply(far(&[1, 4], "/other")).await.unwrap();
    assert_eq!(
        control.count_users("in").unwrap(),
        1,
        "who was added is not in the file"
    );
    for (user, mux, client) in &mut clients {
        match user {
            0 | 3 => assert!(ends(client).await, "{user} {mux}: gone from the file"),
            _ => assert!(is_alive(client).await, "{user} {mux}: in the file"),
        }
    }
    assert_eq!(person.connections(), 0);
    // One who is there before and after a reload is found by what began before it.
    control.remove_user("in", "STAYS@x").unwrap();
    for (user, mux, client) in clients.iter_mut().filter(|(user, ..)| *user == 1) {
        assert!(ends(client).await, "{user} {mux}: removed after a reload");
    }
    // An inbound that is gone leaves them alone.
    control
        .apply(whole(&[door("other", 0)], &[out(0, false)], "{}"))
        .await
        .unwrap();
    for (user, mux, client) in clients.iter_mut().filter(|(user, ..)| *user == 4) {
        assert!(is_alive(client).await, "{user} {mux}: without its inbound");
    }
}
