//! Freedom over a transport and TLS.

use serde_json::{Value, json};

use super::*;

/// A server that ends a tunnel to `target`.
async fn far(target: SocketAddr, stream: Value) -> Server {
    let door = json!({"tag": "far", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
        "settings": {"address": target.ip(), "port": target.port()}, "streamSettings": stream});
    let config = json!({"inbounds": [door], "outbounds": [{"protocol": "freedom"}]});
    Server::start(settings_of(&config)).await.unwrap()
}

/// A door into such a tunnel.
async fn near(freedom: Value, stream: Value) -> Server {
    let door = json!({"tag": "near", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
        "settings": {"address": "127.0.0.9", "port": 9}});
    let outbound = json!({"protocol": "freedom", "settings": freedom, "streamSettings": stream});
    let config = json!({"inbounds": [door], "outbounds": [outbound],
        "dns": {"hosts": {"server.example": "127.0.0.1"}}});
    Server::start(settings_of(&config)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_may_be_the_first_to_speak() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    for stream in [
        json!({"tcpSettings": {"header": {"type": "http"}}}),
        json!({"network": "ws"}),
        json!({"network": "httpupgrade"}),
        json!({"network": "grpc"}),
        json!({"network": "xhttp"}),
    ] {
        let far = far(target, stream.clone()).await;
        let whole = json!({"redirect": at(&far, "far").to_string()});
        let mut in_pieces = whole.clone();
        in_pieces["fragment"] = json!({"length": 3, "interval": 0});
        for freedom in [whole, in_pieces] {
            let what = format!("{freedom} {stream}");
            let near = near(freedom, stream.clone()).await;
            let mut client = TcpStream::connect(at(&near, "near")).await.unwrap();
            let (mut target, _) = within(&what, listener.accept()).await.unwrap();
            target.write_all(b"220 hello").await.unwrap();
            let mut said = [0; 9];
            within(&what, client.read_exact(&mut said)).await.unwrap();
            assert_eq!(&said, b"220 hello", "{what}");
        }
    }
}

/// The name is what TLS asks for, though an address that was found for it is dialled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_asks_for_the_name_that_was_redirected_to() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(&["server.example"]);
    let [certificate_file, key_file] = ["c.pem", "k.pem"].map(|name| dir.path().join(name));
    std::fs::write(&certificate_file, certificate).unwrap();
    std::fs::write(&key_file, key).unwrap();
    let own = json!({"certificateFile": certificate_file, "keyFile": key_file});
    let far = far(
        target().await,
        json!({"network": "ws", "security": "tls", "tlsSettings": {"certificates": [own]}}),
    )
    .await;
    let trusted = json!({"usage": "verify", "certificateFile": certificate_file});
    let tls = json!({"disableSystemRoot": true, "certificates": [trusted]});
    let stream = json!({"network": "ws", "security": "tls", "tlsSettings": tls});
    for strategy in ["AsIs", "UseIP"] {
        let redirect = format!("server.example:{}", at(&far, "far").port());
        let near = near(
            json!({"redirect": redirect, "domainStrategy": strategy}),
            stream.clone(),
        )
        .await;
        within(
            strategy,
            exchange(TcpStream::connect(at(&near, "near")).await.unwrap(), 100, 100),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_are_made_of_what_the_client_says() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = json!({"network": "ws"});
    let far = far(listener.local_addr().unwrap(), stream.clone()).await;
    let fragment = json!({"packets": "tlshello", "length": 2, "interval": 0});
    let near = near(
        json!({"redirect": at(&far, "far").to_string(), "fragment": fragment}),
        stream,
    )
    .await;
    let mut client = TcpStream::connect(at(&near, "near")).await.unwrap();
    client.write_all(&[22, 3, 1, 0, 4, 1, 2, 3, 4]).await.unwrap();
    let (mut target, _) = within("target", listener.accept()).await.unwrap();
    let mut got = [0; 14];
    within("records", target.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, [22, 3, 1, 0, 2, 1, 2, 22, 3, 1, 0, 2, 3, 4]);
}

/// What carries a stream opens nothing: neither on the first way nor by an outbound that is asked in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_clients_reach_no_more_over_a_transport() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    // Connections that streams share go to one place, whatever is asked for.
    let one_place = json!({"redirect": format!("localhost:{port}")});
    let ways = [("ws", json!({})), ("grpc", one_place.clone()), ("xhttp", one_place)];
    let onward = [json!({}), json!({"dialerProxy": "next"})];
    for (number, ((network, freedom), sockopt)) in ways
        .iter()
        .flat_map(|way| onward.iter().map(move |end| (way, end)))
        .enumerate()
    {
        let log = dir.path().join(number.to_string());
        let stream = json!({"network": network, "sockopt": sockopt});
        let mut settings = settings_of(json!({"outbounds": [
            {"tag": "out", "protocol": "freedom", "settings": freedom, "streamSettings": stream},
            {"tag": "next", "protocol": "freedom"}]}));
        settings.inbounds = server_settings(vless(), ServerTransport::default()).inbounds;
        settings.access_log = LogTarget::File(log.clone());
        let server = Server::start(settings).await.unwrap();
        for address in [vec![1, 127, 0, 0, 1], [&[2, 9][..], b"localhost"].concat()] {
            std::fs::write(&log, "").unwrap();
            let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
            stream.write_all(&vless_header(&address, port)).await.unwrap();
            let line = logged(&log, " rejected ").await;
            assert!(
                line.contains("guard of private addresses"),
                "{network} {sockopt}: {line}"
            );
        }
    }
    let accepted = tokio::time::timeout(Duration::from_millis(10), listener.accept()).await;
    assert!(accepted.is_err(), "the target was reached");
}
