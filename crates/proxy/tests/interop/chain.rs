//! Fallbacks of one core in front of a WebSocket inbound of another: by TCP, by unix sockets with a path and with an
//! abstract name, the client announced in both versions of the PROXY protocol.

use std::net::SocketAddr;

use serde_json::json;
use tokio::net::TcpStream;

use crate::common::{exchange, target, within};
use crate::programs::{Place, Program, own_loopback};
use crate::ways::{Files, VLESS, Way, config, door, freedom, placed};

/// One inbound in front and one behind for each kind of socket and each version, and what comes of it.
async fn check(front: Program, back: Program) {
    if !(front.there() && back.there()) {
        return;
    }
    let what = format!("{} in front of {}", front.name(), back.name());
    let (files, front_at, back_at, near) = (Files::new(), Place::new(), Place::new(), Place::new());
    let from = own_loopback();
    let target = target().await;
    let (outer, inner) = (Way::new(VLESS, "tcp", false), Way::new(VLESS, "ws", false));
    let (mut fronts, mut backs, mut doors, mut outbounds, mut rules) = (vec![], vec![], vec![], vec![], vec![]);
    let mut ways: Vec<(String, SocketAddr)> = Vec::new();
    for kind in ["tcp", "path", "abstract", "padded"] {
        for xver in [1, 2] {
            let tag = format!("{kind}{xver}");
            let port = back_at.port();
            let unique = format!("sealway-test-{}-{port}", back_at.host);
            let (listen, dest) = match kind {
                "tcp" => (back_at.host.to_string(), back_at.at(port).to_string()),
                "path" => (back_at.name(&tag), back_at.name(&tag)),
                "abstract" => (format!("@{unique}"), format!("@{unique}")),
                _ => (format!("@@{unique}"), format!("@@{unique}")),
            };
            let mut inbound = inner.inbound(&files);
            inbound["tag"] = json!(tag);
            inbound["listen"] = json!(listen);
            inbound["port"] = json!(port);
            inbound["streamSettings"]["wsSettings"]["acceptProxyProtocol"] = json!(true);
            backs.push(inbound);
            let at = front_at.at(front_at.port());
            let mut inbound = placed(outer.inbound(&files), &tag, at);
            inbound["settings"]["fallbacks"] = json!([{"dest": dest, "xver": xver}]);
            fronts.push(inbound);
            let own = near.at(near.port());
            doors.push(placed(door("tcp", target), &tag, own));
            let mut outbound = inner.outbound(at, &files);
            outbound["tag"] = json!(format!("out-{tag}"));
            outbound["sendThrough"] = json!(from);
            outbounds.push(outbound);
            rules.push(json!({"inboundTag": [tag], "outboundTag": format!("out-{tag}")}));
            ways.push((tag, own));
        }
    }
    for place in [&front_at, &back_at, &near] {
        place.let_go();
    }
    let mut server = config(backs, vec![freedom()], vec![]);
    server["log"]["access"] = json!(back_at.name("access.log"));
    let _back = back.run(&back_at, &server).await;
    let _front = front.run(&front_at, &config(fronts, vec![freedom()], vec![])).await;
    let _client = Program::Ours.run(&near, &config(doors, outbounds, rules)).await;
    for (tag, door) in &ways {
        let what = format!("{what}, {tag}");
        for (up, down) in [(1, 1), (65536, 65536), (2 << 20, 2 << 20)] {
            let stream = TcpStream::connect(door).await.unwrap();
            within(&what, exchange(stream, up, down)).await;
        }
        let (address, own) = (format!("{from}:"), format!("[{tag} "));
        let fits = |line: &str| line.contains(&address) && line.contains(" accepted ") && line.contains(&own);
        // V2Ray leaves the outbound out of its line when it is the default.
        let fits_v2ray = |line: &str| line.contains(&address) && line.contains(" accepted ");
        if back == Program::V2ray {
            back_at.line("access.log", fits_v2ray).await;
        } else {
            back_at.line("access.log", fits).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_in_front_of_ours() {
    check(Program::Ours, Program::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_in_front_of_ours() {
    check(Program::Xray, Program::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_in_front_of_xray() {
    check(Program::Ours, Program::Xray).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_in_front_of_ours() {
    check(Program::V2ray, Program::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_in_front_of_v2ray() {
    check(Program::Ours, Program::V2ray).await;
}
