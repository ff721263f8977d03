use rustls::pki_types::PrivateKeyDer;
use sealway_tls::group::X25519Secret;
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::clock::unix_time;
use crate::settings::ClientReality;
use crate::tls::provider::provider;
use crate::tls::reality::RealityClient;

/// A site of TLS 1.3, and its port.
async fn site() -> u16 {
    // A flight in one record of at most 512 bytes is taken for the first of four.
    let names: Vec<String> = (0..20).map(|number| format!("{number}.a.test")).collect();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider("", &[], &[]).unwrap())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(acceptor.accept(tcp));
        }
    });
    port
}

#[tokio::test]
async fn who_has_the_key_is_a_stranger_where_too_many_handshakes_do_not_end() {
    let settings = to_port(site().await);
    let reality = Reality::new("", &settings, &SocketOptions::default()).unwrap();
    let client = ClientReality {
        server_name: "a.test".into(),
        fingerprint: "chrome".into(),
        public_key: X25519Secret::new(&settings.private_key.0).public(),
        short_id: [0; 8],
        short_id_len: 8,
        mldsa65_verify: None,
        spider_x: "/".into(),
        key_log: None,
    };
    let client = RealityClient::new("", &client, unix_time).unwrap();
    let is_let_in = async |source: &str| {
        let (here, there) = UnixStream::pair().unwrap();
        let ends = Ends {
            source: Some(source.parse().unwrap()),
            local: None,
        };
        let (traffic, deadline) = (Traffic::default(), Instant::now() + Duration::from_secs(2));
        let meeting = reality.meet(Sock::Unix(here), Vec::new(), (ends, None), &traffic, deadline);
        let host = sealway_v2ray::Address::from(IpAddr::from([192, 0, 2, 1]));
        let connecting = client.connect(&host, Sock::Unix(there), &traffic);
        let connected = async {
            let _ = connecting.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            met = meeting => match met {
                Met::Client(_) => true,
                Met::Stranger(_) => false,
                Met::Gone(error) => panic!("{error}"),
            },
            () = connected => unreachable!(),
        }
    };
    let crowded = "192.0.2.77:1";
    let address = crowded.parse::<SocketAddr>().unwrap().ip();
    let held: Vec<Place> = std::iter::from_fn(|| FINISHING.enter(Some(address))).collect();
    let let_in = tokio::join!(is_let_in(crowded), is_let_in("192.0.2.78:1"));
    assert_eq!((held.len(), let_in), (1024, (false, true)));
}
