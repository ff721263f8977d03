//! What the rules decide, asked and watched over gRPC: at this server, and at a real Xray where it can be asked.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sealway_api::proto::xray::app::router::command::{RoutingContext, SubscribeRoutingStatsRequest, TestRouteRequest};
use sealway_api::proto::xray::common::net::Network;
use sealway_api::{Api, LISTENER, Options, Service};
use sealway_proxy::Server;
use sealway_proxy::settings::{Listen, Settings};
use sealway_v2ray::config::{File, load};
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A configuration for both programs: a door that leads to a port of this machine, and a balancer for one name.
fn config(to: u16, more: &str) -> String {
    format!(
        r#"{{{more}
        "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {to}, "network": "tcp"}}}}],
        "outbounds": [{{"tag": "direct", "protocol": "freedom"}}, {{"tag": "block", "protocol": "blackhole"}}],
        "routing": {{"rules": [
            {{"domain": ["full:x.example"], "balancerTag": "b1"}},
            {{"inboundTag": ["in"], "outboundTag": "direct"}}],
            "balancers": [{{"tag": "b1", "selector": ["block"]}}]}}}}"#
    )
}

struct Client(Grpc<Channel>);

impl Client {
    async fn test_route(&mut self, asked: TestRouteRequest) -> Result<Response<RoutingContext>, Status> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/xray.app.router.command.RoutingService/TestRoute");
        self.0.unary(Request::new(asked), path, ProstCodec::default()).await
    }

    async fn subscribe(&mut self, selectors: &[&str]) -> Result<Streaming<RoutingContext>, Status> {
        let asked = SubscribeRoutingStatsRequest {
            field_selectors: selectors.iter().map(|&one| one.to_owned()).collect(),
        };
        self.0.ready().await.unwrap();
        // The other name that the service has.
        let path = PathAndQuery::from_static("/v2ray.core.app.router.command.RoutingService/SubscribeRoutingStats");
        let stream = self
            .0
            .server_streaming(Request::new(asked), path, ProstCodec::default())
            .await;
        stream.map(Response::into_inner)
    }
}

/// A server with the API, and a client of it.
async fn server(to: u16) -> (Server, Client) {
    let text = config(to, "");
    let file = File {
        name: "c",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Default::default());
    let mut settings = Settings::from_config(loaded.config.as_ref().unwrap()).unwrap();
    let api = Api::new(Options {
        tag: "api".to_owned(),
        listen: Some(Listen::Port((Ipv4Addr::LOCALHOST, 0).into())),
        services: vec![Service::RoutingService],
        ..Options::default()
    });
    api.wire(&mut settings);
    let server = Server::start(settings).await.unwrap();
    api.manage(server.control());
    let client = client(server.addresses(LISTENER)[0]).await;
    (server, client)
}

async fn client(at: SocketAddr) -> Client {
    let endpoint = Endpoint::from_shared(format!("http://{at}")).unwrap();
    Client(Grpc::new(endpoint.connect().await.unwrap()))
}

/// A connection of which everything is known.
fn context() -> RoutingContext {
    RoutingContext {
        inbound_tag: "in".to_owned(),
        network: Network::Tcp.into(),
        source_i_ps: vec![vec![10, 0, 0, 1], vec![10, 0, 0, 2]],
        target_i_ps: vec![vec![192, 0, 2, 1]],
        source_port: 1234,
        target_port: 443,
        target_domain: "x.example".to_owned(),
        protocol: "tls".to_owned(),
        user: "a@b".to_owned(),
        attributes: [(":method".to_owned(), "GET".to_owned())].into(),
        local_i_ps: vec![vec![0; 16]],
        local_port: 80,
        vless_route: 7,
        ..RoutingContext::default()
    }
}

fn asked(context: RoutingContext, selectors: &[&str], publish: bool) -> TestRouteRequest {
    TestRouteRequest {
        routing_context: Some(context),
        field_selectors: selectors.iter().map(|&one| one.to_owned()).collect(),
        publish_result: publish,
    }
}

/// A real Xray, ended at the end.
struct Xray(Child);

impl Drop for Xray {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts Xray with an API, if it is here.
async fn xray(folder: &std::path::Path) -> Option<(Xray, Client)> {
    let free = || Ok::<_, io::Error>(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port());
    let (api, port) = (free().unwrap(), free().unwrap());
    let api = SocketAddr::from((Ipv4Addr::LOCALHOST, api));
    let more = format!(r#""api": {{"tag": "api", "listen": "{api}", "services": ["RoutingService"]}},"#);
    let path = folder.join("xray.json");
    let text = config(9, &more).replace("\"port\": 0", &format!("\"port\": {port}"));
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("xray");
    command.arg("run").arg("-c").arg(&path);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
        assert!(!required, "SEALWAY_REQUIRE_PEERS=1, but there is no xray");
        println!("skipped: there is no xray");
        return None;
    };
    let xray = Xray(child);
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(api).await.is_err() {
        assert!(Instant::now() < until, "xray does not listen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Some((xray, client(api).await))
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_selected_as_by_xray() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut ours) = server(9).await;
    let whole = ours
        .test_route(asked(context(), &[], false))
        .await
        .unwrap()
        .into_inner();
    let wanted = RoutingContext {
        outbound_tag: "block".to_owned(),
        outbound_group_tags: vec!["b1".to_owned()],
        // It is no field that can be asked for.
        vless_route: 0,
        ..context()
    };
    assert_eq!(whole, wanted);
    let Some((_xray, mut theirs)) = xray(folder.path()).await else {
        return;
    };
    for selectors in [
        &[][..],
        &["inbound"],
        &["in"],
        &["ip"],
        &["ip_l"],
        &["port"],
        &["port_source", "user"],
        &["p"],
        &["out"],
        &["outbound"],
        &["outbound_group"],
        &["domain", "network", "attributes"],
        &[""],
        &["nope"],
        &["Inbound"],
        &["inbound_tag"],
    ] {
        let ours = ours.test_route(asked(context(), selectors, false)).await.unwrap();
        let theirs = theirs.test_route(asked(context(), selectors, false)).await.unwrap();
        let mut ours = ours.into_inner();
        // Xray has the field and leaves it empty.
        let groups = std::mem::take(&mut ours.outbound_group_tags);
        let is_selected = selectors.is_empty() || selectors.iter().any(|one| "outbound_group".starts_with(one));
        assert_eq!(
            groups,
            is_selected.then(|| "b1".to_owned()).into_iter().collect::<Vec<_>>(),
            "{selectors:?}"
        );
        assert_eq!(ours, theirs.into_inner(), "{selectors:?}");
    }
}

async fn next(stream: &mut Streaming<RoutingContext>) -> Result<Option<RoutingContext>, Status> {
    tokio::time::timeout(PATIENCE, stream.message())
        .await
        .expect("nothing comes")
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_are_told_what_is_decided() {
    let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = target.local_addr().unwrap();
    let (server, mut client) = server(to.port()).await;
    let mut all = client.subscribe(&[]).await.unwrap();
    let mut tags = client.subscribe(&["outbound"]).await.unwrap();

    let door = server.addresses("in")[0];
    let stream = TcpStream::connect(door).await.unwrap();
    let local = vec![127, 0, 0, 1];
    let wanted = RoutingContext {
        inbound_tag: "in".to_owned(),
        network: Network::Tcp.into(),
        source_i_ps: vec![local.clone()],
        target_i_ps: vec![local.clone()],
        local_i_ps: vec![local],
        source_port: stream.local_addr().unwrap().port().into(),
        target_port: to.port().into(),
        local_port: door.port().into(),
        outbound_tag: "direct".to_owned(),
        ..RoutingContext::default()
    };
    assert_eq!(next(&mut all).await.unwrap().unwrap(), wanted);
    let wanted = RoutingContext {
        outbound_tag: "direct".to_owned(),
        ..RoutingContext::default()
    };
    assert_eq!(next(&mut tags).await.unwrap().unwrap(), wanted);

    // What is only asked is told of if that is wanted.
    for (user, publish) in [("nobody", false), ("anna", true)] {
        let context = RoutingContext {
            user: user.to_owned(),
            target_domain: "x.example".to_owned(),
            target_port: 80,
            ..RoutingContext::default()
        };
        client.test_route(asked(context, &["user"], publish)).await.unwrap();
    }
    let published = next(&mut all).await.unwrap().unwrap();
    assert_eq!(
        (published.user.as_str(), published.target_domain.as_str()),
        ("anna", "x.example")
    );
    assert_eq!(
        (published.outbound_tag.as_str(), published.outbound_group_tags),
        ("block", vec!["b1".to_owned()])
    );
    let published = next(&mut tags).await.unwrap().unwrap();
    assert_eq!(
        (published.user.as_str(), published.outbound_tag.as_str()),
        ("", "block")
    );

    // No more than so many, and another one when one has gone.
    let mut more = Vec::new();
    let refused = loop {
        match self::client(server.addresses(LISTENER)[0]).await.subscribe(&[]).await {
            Ok(stream) => more.push(stream),
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.code(), more.len()), (Code::ResourceExhausted, 14), "{refused}");
    more.clear();
    let until = Instant::now() + PATIENCE;
    while client.subscribe(&[]).await.is_err() {
        assert!(Instant::now() < until, "no place becomes free");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_who_does_not_read_is_told_and_holds_nobody() {
    let (_server, mut client) = server(9).await;
    let mut slow = client.subscribe(&[]).await.unwrap();
    let many = 4000;
    for _ in 0..many {
        let context = RoutingContext {
            target_domain: "x.example".to_owned(),
            user: "u".repeat(8 << 10),
            ..RoutingContext::default()
        };
        let answer = client.test_route(asked(context, &["outbound"], true)).await.unwrap();
        assert_eq!(answer.into_inner().outbound_tag, "block");
    }
    let mut came = 0;
    let told = loop {
        match next(&mut slow).await {
            Ok(Some(_)) => came += 1,
            Ok(None) => panic!("it ends without a word"),
            Err(told) => break told,
        }
    };
    assert!(came < many, "{came}");
    assert_eq!(told.code(), Code::ResourceExhausted);
    assert!(told.message().contains("decisions were dropped"), "{told}");
}
