use std::io;
use std::sync::Arc;

use sealway_proxy::Server;
use sealway_proxy::settings::{Outbound, Settings};
use sealway_v2ray::config::{File, load};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::compiled::typed;
use crate::options::{LISTENER, Options, Service};
use crate::proto::handler::handler_service_server::HandlerService;
use crate::proto::handler::*;
use crate::proto::routing::routing_service_server::RoutingService;
use crate::proto::routing::{AddRuleRequest, TestRouteRequest};
use crate::proto::{InboundHandlerConfig, OutboundHandlerConfig, TypedMessage};
use crate::wire::{Api, MAX_CONNECTIONS};

async fn server() -> Server {
    let text = br#"{"inbounds": [], "outbounds": [{"protocol": "blackhole"}]}"#;
    let loaded = load(&[File { name: "c", text }], &Default::default());
    let settings = Settings::from_config(loaded.config.as_ref().unwrap()).unwrap();
    assert!(matches!(settings.outbounds.as_slice(), [Outbound { .. }]));
    Server::start(settings).await.unwrap()
}

fn told<A>(answer: Result<Response<A>, Status>) -> String {
    answer.err().unwrap().message().to_owned()
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let server = server().await;
    let handler = Handler::new(server.control(), &Arc::default());
    let routing = Routing::new(server.control(), &Arc::default());
    let nothing = "Invalid routing request.";
    assert_eq!(
        told(handler.add_inbound(Request::new(Default::default())).await),
        "the inbound is missing"
    );
    assert_eq!(
        told(handler.add_outbound(Request::new(Default::default())).await),
        "the outbound is missing"
    );
    assert_eq!(
        told(handler.alter_inbound(Request::new(Default::default())).await),
        "the operation is missing"
    );
    assert_eq!(
        told(routing.add_rule(Request::new(AddRuleRequest::default())).await),
        "the rules are missing"
    );
    assert_eq!(
        told(routing.test_route(Request::new(TestRouteRequest::default())).await),
        nothing
    );
    for (inbound, missing) in [
        (InboundHandlerConfig::default(), "ReceiverConfig is missing"),
        (
            InboundHandlerConfig {
                receiver_settings: Some(TypedMessage {
                    r#type: "xray.app.proxyman.ReceiverConfig".to_owned(),
                    value: Vec::new(),
                }),
                ..Default::default()
            },
            "proxy_settings is missing",
        ),
    ] {
        let request = AddInboundRequest { inbound: Some(inbound) };
        let told = told(handler.add_inbound(Request::new(request)).await);
        assert!(told.ends_with(missing), "{told}");
    }
    for (kind, missing) in [
        ("AddUser", "the user is missing"),
        ("RemoveUser", "Email must not be empty."),
    ] {
        let kind = format!("xray.app.proxyman.command.{kind}Operation");
        let request = AlterInboundRequest {
            tag: String::new(),
            operation: Some(typed(&kind, &AddUserOperation::default())),
        };
        let told = told(handler.alter_inbound(Request::new(request)).await);
        assert!(told.contains(missing) || told.contains("handler not found"), "{told}");
    }
}

#[tokio::test]
async fn its_own_tag_is_nobody_elses() {
    let server = server().await;
    let handler = Handler::new(server.control(), &Arc::default());
    let taken = format!("existing tag found: {LISTENER}");
    let request = AddInboundRequest {
        inbound: Some(InboundHandlerConfig {
            tag: LISTENER.to_owned(),
            ..Default::default()
        }),
    };
    assert_eq!(told(handler.add_inbound(Request::new(request)).await), taken);
    let request = AddOutboundRequest {
        outbound: Some(OutboundHandlerConfig {
            tag: LISTENER.to_owned(),
            ..Default::default()
        }),
    };
    assert_eq!(told(handler.add_outbound(Request::new(request)).await), taken);
}

/// Waits for the first bytes from the server: its settings of HTTP/2. Nothing, if it has closed.
async fn begun(stream: &mut UnixStream) -> io::Result<usize> {
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await?;
    stream.read(&mut [0; 64]).await
}

#[tokio::test]
async fn so_many_connections_are_answered() {
    let server = server().await;
    let api = Api::new(Options {
        services: vec![Service::StatsService],
        ..Options::default()
    });
    let mut settings = Settings::default();
    api.wire(&mut settings);
    let connect = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (settings.services[0].connect)(theirs);
        ours
    };
    let closed = |answer: io::Result<usize>| !matches!(answer, Ok(1..));
    assert!(closed(begun(&mut connect()).await), "there is no server yet");
    api.manage(server.control());
    let mut all = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = connect();
        assert!(!closed(begun(&mut stream).await));
        all.push(stream);
    }
    assert!(closed(begun(&mut connect()).await), "one too many");
    all.clear();
    // A place is free once the other end is seen to be gone.
    while closed(begun(&mut connect()).await) {
        tokio::task::yield_now().await;
    }
}
