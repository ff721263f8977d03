//! A v2 peer built on crate `bip324`.

use bip324::{CipherSession, GarbageResult, Handshake, Initialized, PacketType, Role, VersionResult};
use sealway_bip324::Magic;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Peer {
    pub tcp: TcpStream,
    pub cipher: CipherSession,
}

impl Peer {
    /// Shakes hands over a stream.
    pub async fn new(mut tcp: TcpStream, network: Magic, role: Role) -> Peer {
        let handshake = Handshake::<Initialized>::new(network.0, role).unwrap();
        let garbage = [5; 100];
        let mut first = vec![0; 64 + garbage.len()];
        let handshake = handshake.send_key(Some(&garbage), &mut first).unwrap();
        // A responder speaks after it has heard.
        let mut key = [0; 64];
        if matches!(role, Role::Initiator) {
            tcp.write_all(&first).await.unwrap();
            tcp.read_exact(&mut key).await.unwrap();
        } else {
            tcp.read_exact(&mut key).await.unwrap();
            tcp.write_all(&first).await.unwrap();
        }
        let handshake = handshake.receive_key(key).unwrap();
        let decoys: &[&[u8]] = &[b"a decoy"];
        let mut second = vec![0; Handshake::<bip324::ReceivedKey<'_>>::send_version_len(Some(decoys))];
        let mut handshake = handshake.send_version(&mut second, Some(decoys)).unwrap();
        tcp.write_all(&second).await.unwrap();
        let mut garbage = Vec::new();
        loop {
            garbage.push(tcp.read_u8().await.unwrap());
            match handshake.receive_garbage(&garbage).unwrap() {
                GarbageResult::NeedMoreData(again) => handshake = again,
                GarbageResult::FoundGarbage { mut handshake, .. } => loop {
                    let mut length = [0; 3];
                    tcp.read_exact(&mut length).await.unwrap();
                    let len = handshake.decrypt_packet_len(length).unwrap();
                    let mut packet = vec![0; len];
                    tcp.read_exact(&mut packet).await.unwrap();
                    match handshake.receive_version(&mut packet).unwrap() {
                        VersionResult::Decoy(again) => handshake = again,
                        VersionResult::Complete { cipher } => return Peer { tcp, cipher },
                    }
                },
            }
        }
    }

    /// The wire form of a message.
    pub fn sealed(&mut self, contents: &[u8]) -> Vec<u8> {
        self.cipher
            .outbound()
            .encrypt_to_vec(contents, PacketType::Genuine, None)
    }

    pub async fn send(&mut self, contents: &[u8]) {
        let wire = self.sealed(contents);
        self.tcp.write_all(&wire).await.unwrap();
    }

    pub async fn send_decoy(&mut self) {
        let wire = self
            .cipher
            .outbound()
            .encrypt_to_vec(b"nothing", PacketType::Decoy, None);
        self.tcp.write_all(&wire).await.unwrap();
    }

    /// The next packet: its kind and its contents.
    pub async fn recv_packet(&mut self) -> (PacketType, Vec<u8>) {
        let mut length = [0; 3];
        self.tcp.read_exact(&mut length).await.unwrap();
        let len = self.cipher.inbound().decrypt_packet_len(length);
        let mut packet = vec![0; len];
        self.tcp.read_exact(&mut packet).await.unwrap();
        let (kind, mut text) = self.cipher.inbound().decrypt_to_vec(&packet, None).unwrap();
        (kind, text.split_off(1))
    }

    /// The contents of the next packet, which is a message.
    pub async fn recv(&mut self) -> Vec<u8> {
        let (kind, contents) = self.recv_packet().await;
        assert!(matches!(kind, PacketType::Genuine), "a decoy");
        contents
    }
}
