//! Outbounds that dial through another outbound: `dialerProxy`, and `proxySettings` with and without the transport. The same
//! text is run by every core.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::{target, udp_target};
use crate::lacks::Largest;
use crate::matrix::{datagrams, stream};
use crate::programs::{Place, Program, nothing_is_wrong};
use crate::ways::{Files, VLESS, Way, config, door, freedom, placed};

/// How an outbound names the one it dials through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum By {
    Dialer,
    Proxy,
    ProxyWithTransport,
}

/// An outbound and its server: a name, both ends, how the chain is written.
type Chain = (&'static str, Value, Value, By);

const SHADOWSOCKS: &str = "aes-128-gcm";

fn chains(files: &Files, far: &Place) -> Vec<Chain> {
    let way = |protocol, network, tls, by, name| {
        let (way, at) = (Way::new(protocol, network, tls), far.at(far.port()));
        (name, placed(way.inbound(files), name, at), way.outbound(at, files), by)
    };
    let at = far.at(far.port());
    let settings = json!({"method": SHADOWSOCKS, "password": "a password", "network": "tcp,udp"});
    let inbound = placed(json!({"protocol": "shadowsocks", "settings": settings}), "ss", at);
    let server = json!({"address": at.ip(), "port": at.port(), "method": SHADOWSOCKS, "password": "a password"});
    let outbound = json!({"protocol": "shadowsocks", "settings": {"servers": [server]}});
    vec![
        ("ss", inbound, outbound, By::Dialer),
        way(VLESS, "tcp", false, By::Proxy, "raw"),
        way(VLESS, "tcp", true, By::Proxy, "tls"),
        way(("vmess", "auto"), "ws", true, By::Dialer, "ws"),
        way(VLESS, "ws", false, By::ProxyWithTransport, "ws-proxied"),
        way(VLESS, "grpc", true, By::Dialer, "grpc"),
        way(VLESS, "xhttp", true, By::Dialer, "xhttp"),
        way(VLESS, "httpupgrade", false, By::Dialer, "upgrade"),
    ]
}

async fn check(client: Program, server: Program, only: fn(&Chain) -> bool) {
    if !(client.there() && server.there()) {
        return;
    }
    let (files, far, between, near) = (Files::new(), Place::new(), Place::new(), Place::new());
    let (target, udp_target) = (target().await, udp_target().await);
    let hop = Way::new(("vmess", "auto"), "ws", false);
    let hop_at = between.at(between.port());
    let mut inbounds = vec![];
    let mut outbounds = vec![hop.outbound(hop_at, &files)];
    outbounds[0]["tag"] = json!("hop");
    let (mut doors, mut rules, mut ways) = (vec![], vec![], vec![]);
    for (name, inbound, mut outbound, by) in chains(&files, &far).into_iter().filter(only) {
        inbounds.push(inbound);
        match by {
            By::Dialer => outbound["streamSettings"]["sockopt"] = json!({"dialerProxy": "hop"}),
            By::Proxy => outbound["proxySettings"] = json!({"tag": "hop"}),
            By::ProxyWithTransport => outbound["proxySettings"] = json!({"tag": "hop", "transportLayer": true}),
        }
        outbound["tag"] = json!(name);
        outbounds.push(outbound);
        let [tcp, udp] = [near.at(near.port()), near.at(near.port())];
        doors.push(placed(door("tcp", target), &format!("tcp-{name}"), tcp));
        doors.push(placed(door("udp", udp_target), &format!("udp-{name}"), udp));
        let from = [format!("tcp-{name}"), format!("udp-{name}")];
        rules.push(json!({"type": "field", "inboundTag": from, "outboundTag": name}));
        ways.push((name, tcp, udp));
    }
    far.let_go();
    let _server = server.run(&far, &config(inbounds, vec![freedom()], vec![])).await;
    between.let_go();
    // A server does not dial itself, so this is another one.
    let mut text = config(
        vec![placed(hop.inbound(&files), "hop", hop_at)],
        vec![freedom()],
        vec![],
    );
    text["log"]["access"] = json!(between.name("access.log"));
    let _between = server.run(&between, &text).await;
    near.let_go();
    let _client = client.run(&near, &config(doors, outbounds, rules)).await;
    let mut running = JoinSet::new();
    for (name, tcp, udp) in ways {
        // Xray's VMess client now and then takes a program for ended that speaks late.
        let tries = if client == Program::Xray { 5 } else { 1 };
        running.spawn(async move {
            for sizes in [(1, 1), (0, 65_536), (1 << 20, 1 << 20)] {
                stream(tcp, sizes, tries)
                    .await
                    .map_err(|wrong| format!("{name}: {wrong}"))?;
            }
            let largest = Largest {
                len: 1200,
                exact: false,
            };
            datagrams(udp, largest)
                .await
                .map_err(|wrong| format!("{name}: {wrong}"))
        });
    }
    let wrong: Vec<String> = running.join_all().await.into_iter().filter_map(Result::err).collect();
    nothing_is_wrong(client, server, &wrong);
    // All of it went by the hop.
    between.line("access.log", |line| line.contains("[hop")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_server() {
    check(Program::Ours, Program::Xray, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_client() {
    check(Program::Xray, Program::Ours, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    // It knows neither `dialerProxy` nor `transportLayer`.
    check(Program::V2ray, Program::Ours, |(_, _, _, by)| *by == By::Proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    check(Program::Ours, Program::Ours, |_| true).await;
}
