//! Tunnels without a proxy protocol: a freedom outbound dials a dokodemo-door over a transport. The same text is run by every
//! core.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::common::{target, udp_target};
use crate::lacks::{Largest, has};
use crate::matrix::{datagrams, stream};
use crate::programs::{Place, Program, nothing_is_wrong};
use crate::ways::{Files, VLESS, Way, config, door, freedom, placed};

const NETWORKS: [(&str, bool); 10] = [
    ("tcp", true),
    ("tcp http", false),
    ("ws", false),
    ("ws", true),
    ("httpupgrade", false),
    ("httpupgrade", true),
    ("grpc", false),
    ("grpc", true),
    ("xhttp", false),
    ("xhttp", true),
];

/// One end of a tunnel, with what carries it.
fn over(mut end: Value, stream: Value) -> Value {
    end["streamSettings"] = stream;
    end
}

/// A freedom outbound that leads to one place.
fn to(at: SocketAddr) -> Value {
    let mut outbound = freedom();
    outbound["settings"]["redirect"] = json!(at.to_string());
    outbound
}

/// Xray has the kernel move what a target answers to a dokodemo-door, and leaves out the TLS of that, unless told not to.
const SEALS: [(&str, &str); 2] = [("XRAY_CONE_DISABLED", "true"), ("XRAY_BUF_SPLICE", "disable")];

async fn check([client, server]: [Program; 2]) {
    if !(client.there() && server.there()) {
        return;
    }
    let (files, far, near) = (Files::new(), Place::new(), Place::new());
    let (target, udp_target) = (target().await, udp_target().await);
    // Nobody is there: what arrives was redirected.
    let nowhere = far.at(9);
    let (mut inbounds, mut doors, mut outbounds, mut rules) = (vec![], vec![], vec![], vec![]);
    let mut tunnels = Vec::new();
    for (network, tls) in NETWORKS {
        let way = Way::new(VLESS, network, tls);
        let v2ray = [client, server].contains(&Program::V2ray);
        if !(has(client, &way) && has(server, &way)) || v2ray && ["grpc", "xhttp"].contains(&network) {
            continue;
        }
        // What datagrams go by is the same for all transports: none.
        let kinds = if network == "ws" { &["tcp", "udp"][..] } else { &["tcp"] };
        for &kind in kinds {
            let (name, end) = (
                format!("{kind} by {}", way.name()),
                if kind == "udp" { udp_target } else { target },
            );
            let [far_at, near_at] = [far.at(far.port()), near.at(near.port())];
            inbounds.push(placed(over(door(kind, end), way.stream(0, &files)), &name, far_at));
            doors.push(placed(door(kind, nowhere), &name, near_at));
            let mut outbound = over(to(far_at), way.stream(1, &files));
            outbound["tag"] = json!(format!("out {name}"));
            outbounds.push(outbound);
            rules.push(json!({"type": "field", "inboundTag": [&name], "outboundTag": format!("out {name}")}));
            tunnels.push((name, kind, near_at));
        }
    }
    far.let_go();
    let inbounds = config(inbounds, vec![freedom()], vec![]);
    let _server = server.run_in(&far, &inbounds, &SEALS).await;
    near.let_go();
    let _client = client.run(&near, &config(doors, outbounds, rules)).await;
    let mut running = JoinSet::new();
    for (name, kind, at) in tunnels {
        running.spawn(async move {
            let done = match kind {
                "udp" => {
                    let largest = Largest {
                        len: 1200,
                        exact: false,
                    };
                    datagrams(at, largest).await
                }
                _ => streams(at).await,
            };
            done.map_err(|wrong| format!("{name}: {wrong}"))
        });
    }
    let wrong: Vec<String> = running.join_all().await.into_iter().filter_map(Result::err).collect();
    nothing_is_wrong(client, server, &wrong);
}

async fn streams(at: SocketAddr) -> Result<(), String> {
    for sizes in [(1, 1), (0, 65_536), (1 << 20, 1 << 20)] {
        stream(at, sizes, 1).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_server() {
    check([Program::Ours, Program::Xray]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_client() {
    check([Program::Xray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_server() {
    check([Program::Ours, Program::V2ray]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    check([Program::V2ray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    check([Program::Ours, Program::Ours]).await;
}

/// What [`SEALS`] is for: with it the tunnel works, and without it alone nothing comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_still_answers_in_the_clear() {
    if !Program::Xray.there() {
        return;
    }
    let (files, way, target) = (Files::new(), Way::new(VLESS, "tcp", true), target().await);
    for (environment, works) in [(&SEALS[..], true), (&SEALS[..1], false)] {
        let (far, near) = (Place::new(), Place::new());
        let far_at = far.at(far.port());
        let inbound = placed(over(door("tcp", target), way.stream(0, &files)), "in", far_at);
        far.let_go();
        let inbounds = config(vec![inbound], vec![freedom()], vec![]);
        let _server = Program::Xray.run_in(&far, &inbounds, environment).await;
        let near_at = near.at(near.port());
        let entry = placed(door("tcp", far.at(9)), "entry", near_at);
        near.let_go();
        let config = config(vec![entry], vec![over(to(far_at), way.stream(1, &files))], vec![]);
        let _client = Program::Ours.run(&near, &config).await;
        let answer = stream(near_at, (1, 1), 1).await;
        let what = match works {
            true => "the tunnel does not work, sealed or not",
            false => "Xray seals it now: take SEALS out",
        };
        assert_eq!(answer.is_ok(), works, "{what}: {answer:?}");
    }
}
