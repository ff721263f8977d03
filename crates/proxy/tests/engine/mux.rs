//! Many sessions in one connection: through the whole of two engines, and what strangers to the rules of it get.

mod associations;
mod datagrams;
mod frames;
mod streams;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::mux::{self, GlobalId, Status};
use sealway_v2ray::{Destination, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::*;

/// A server, and an address by which it is reached that counts connections.
pub(crate) struct Far {
    pub(crate) _server: Server,
    pub(crate) at: SocketAddr,
    pub(crate) carriers: Arc<AtomicUsize>,
}

impl Far {
    pub(crate) async fn start(protocol: InboundProtocol) -> Far {
        let server = serve(protocol).await;
        let behind = at(&server, "in");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, carriers) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = Arc::clone(&carriers);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Far {
            _server: server,
            at,
            carriers,
        }
    }

    pub(crate) fn carriers(&self) -> usize {
        self.carriers.load(Ordering::Relaxed)
    }

    pub(crate) fn vless(&self) -> OutboundProtocol {
        vless_out(self.at)
    }
}

pub(crate) fn with(protocol: OutboundProtocol, mux: MuxOut) -> Outbound {
    Outbound {
        mux,
        ..outbound(protocol, ClientTransport::default())
    }
}

pub(crate) fn eight() -> MuxOut {
    MuxOut {
        streams: Some(8),
        datagrams: MuxDatagrams::Shared,
        port_443: MuxPort443::Allow,
        ..MuxOut::default()
    }
}

/// A carrier by hand.
pub(crate) struct Carrier {
    pub(crate) stream: TcpStream,
    pub(crate) read: Vec<u8>,
    pub(crate) answered: bool,
}

impl Carrier {
    pub(crate) async fn open(at: SocketAddr) -> Carrier {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut request = vless_request("127.0.0.1:1".parse().unwrap());
        request.truncate(19);
        request[18] = 3;
        stream.write_all(&request).await.unwrap();
        Carrier {
            stream,
            read: Vec::new(),
            answered: false,
        }
    }

    pub(crate) async fn send(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        push(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    pub(crate) async fn new_stream(&mut self, id: u16, target: SocketAddr, data: &[u8]) {
        let to = Destination::tcp(target.ip(), target.port());
        self.send(|out| mux::push_new(out, id, &to, None, Some(data)).unwrap())
            .await;
    }

    pub(crate) async fn new_packets(&mut self, id: u16, target: SocketAddr, program: u8, data: &[u8]) {
        // What a client makes of a key; here only that it is the same or another one counts.
        let key = mux::BaseKey::from_bytes([program; 32]);
        let global = Some(GlobalId::new(&key, "1.2.3.4:5".parse().unwrap()));
        let to = Destination::udp(target.ip(), target.port());
        self.send(|out| mux::push_new(out, id, &to, global, Some(data)).unwrap())
            .await;
    }

    /// The next frame, with its data. `None`: the carrier has ended.
    pub(crate) async fn frame(&mut self) -> Option<(u16, Status, bool, Vec<u8>)> {
        loop {
            if self.answered
                && let Step::Done { value, used } = mux::decode(&self.read).unwrap()
            {
                let data = value.data.map_or(Vec::new(), |range| self.read[range].to_vec());
                self.read.drain(..used);
                return Some((value.id, value.status, value.error, data));
            }
            if within("frame", self.stream.read_buf(&mut self.read)).await.unwrap_or(0) == 0 {
                return None;
            }
            if !self.answered && self.read.len() >= 2 {
                assert_eq!(self.read[..2], [0, 0]);
                self.read.drain(..2);
                self.answered = true;
            }
        }
    }
}

pub(crate) async fn direct() -> Server {
    serve(vless()).await
}
