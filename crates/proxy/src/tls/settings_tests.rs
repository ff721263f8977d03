//! What TLS settings make two ends agree on, or refuse.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sealway_net::sock::Sock;
use sha2::{Digest, Sha256};
use tokio::net::UnixStream;

use crate::settings::{Certificate, CipherSuite, ClientTls, Curve, Pem, ServerTls};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::handshake::{accept, connect};
use crate::tls::{build, verify};

/// A root, an authority it signed, and a server and a client that one signed.
struct Chain {
    root: String,
    between: String,
    server: (String, String),
    client: (String, String),
    /// SHA-256 of the public keys of server, intermediate and root.
    keys: [[u8; 32]; 3],
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn pem_digest(pem: &str) -> [u8; 32] {
    digest(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params
}

fn chain() -> Chain {
    let [root_key, between_key, server_key, client_key] = [(); 4].map(|()| KeyPair::generate().unwrap());
    let keys = [&server_key, &between_key, &root_key].map(|key| digest(&key.subject_public_key_info()));
    let root = CertifiedIssuer::self_signed(authority("root"), root_key).unwrap();
    let between = CertifiedIssuer::signed_by(authority("between"), between_key, &root).unwrap();
    let own = |name: &str, key: KeyPair| {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let made = params.signed_by(&key, &between).unwrap();
        (made.pem() + &between.pem(), key.serialize_pem())
    };
    Chain {
        root: root.pem(),
        between: between.pem(),
        server: own("server.example", server_key),
        client: own("client.example", client_key),
        keys,
    }
}

fn shown((certificate, key): &(String, String)) -> Vec<Certificate> {
    vec![Certificate {
        certificate: Pem::Inline(certificate.clone()),
        key: Pem::Inline(key.clone()),
        once: true,
    }]
}

fn server(chain: &Chain) -> ServerTls {
    ServerTls {
        certificates: shown(&chain.server),
        ..ServerTls::default()
    }
}

fn client(chain: &Chain) -> ClientTls {
    ClientTls {
        server_name: "server.example".into(),
        authorities: vec![Pem::Inline(chain.root.clone())],
        no_system_roots: true,
        ..ClientTls::default()
    }
}

/// Whether both ends are content with each other, to the first byte that passes.
async fn meet(server: &ServerTls, client: &ClientTls) -> bool {
    let (server, _) = build::server("in", server).unwrap();
    let client = build::client("out", client).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    let name = "server.example".try_into().unwrap();
    let near = async {
        let established = accept(server, Sock::Unix(a), &Traffic::default(), &[]).await?;
        let mut near = Stream::over_tls(established, Traffic::default());
        near.send(b"x").await
    };
    let far = async {
        let established = connect(client, name, Sock::Unix(b), &Traffic::default()).await?;
        let mut far = Stream::over_tls(established, Traffic::default());
        far.more().await
    };
    let (near, far) = tokio::join!(near, far);
    near.is_ok() && far.is_ok_and(|more| more)
}

#[tokio::test]
async fn pins_hold_besides_all_else() {
    let (chain, stranger) = (chain(), chain());
    let server = server(&chain);
    let usual = client(&chain);
    assert!(meet(&server, &usual).await);
    let with = |change: &dyn Fn(&mut ClientTls)| {
        let mut tls = usual.clone();
        change(&mut tls);
        tls
    };
    let [leaf, between] = [pem_digest(&chain.server.0), pem_digest(&chain.between)];
    let whole: [u8; 32] = digest(&[leaf, between].concat());
    for (tls, fits) in [
        (with(&|tls| tls.pinned = vec![[9; 32], leaf]), true),
        (with(&|tls| tls.pinned = vec![between]), true),
        (with(&|tls| tls.pinned = vec![[9; 32]]), false),
        // A pinned authority vouches for a name; a pinned certificate needs none.
        (
            with(&|tls| (tls.pinned, tls.verify_names) = (vec![between], vec!["other.example".into()])),
            false,
        ),
        (
            with(&|tls| (tls.pinned, tls.verify_names) = (vec![leaf], vec!["other.example".into()])),
            true,
        ),
        (
            with(&|tls| (tls.pinned, tls.allow_insecure) = (vec![[9; 32]], true)),
            false,
        ),
        (with(&|tls| tls.pinned_chains = vec![whole]), true),
        (with(&|tls| tls.pinned_chains = vec![leaf]), false),
        (
            with(&|tls| (tls.pinned_chains, tls.allow_insecure) = (vec![[9; 32]], true)),
            false,
        ),
        (
            with(&|tls| (tls.pinned_chains, tls.authorities) = (vec![whole], vec![Pem::Inline(stranger.root.clone())])),
            false,
        ),
        (with(&|tls| tls.pinned_keys = vec![chain.keys[0]]), true),
        (with(&|tls| tls.pinned_keys = vec![chain.keys[1]]), true),
        (with(&|tls| tls.pinned_keys = vec![chain.keys[2]]), true),
        (with(&|tls| tls.pinned_keys = vec![[9; 32]]), false),
        (
            with(&|tls| (tls.pinned_keys, tls.allow_insecure) = (vec![chain.keys[0]], true)),
            true,
        ),
        (
            with(&|tls| (tls.pinned_keys, tls.allow_insecure) = (vec![chain.keys[1]], true)),
            false,
        ),
    ] {
        assert_eq!(meet(&server, &tls).await, fits, "{tls:?}");
    }
    // A certificate that is shown and signs nothing is no proof.
    let mut server = server.clone();
    server.certificates = shown(&(chain.server.0.clone() + &stranger.between, chain.server.1.clone()));
    assert!(meet(&server, &usual).await);
    assert!(!meet(&server, &with(&|tls| tls.pinned_keys = vec![stranger.keys[1]])).await);
    assert!(!meet(&server, &with(&|tls| tls.pinned = vec![pem_digest(&stranger.between)])).await);
}

#[test]
fn a_chain_has_one_digest() {
    let one: [&[u8]; 1] = [b"a"];
    assert_eq!(verify::chain_digest(one.into_iter()), digest(b"a"));
    let three: [&[u8]; 3] = [b"a", b"b", b"c"];
    let two = digest(&[digest(b"a"), digest(b"b")].concat());
    assert_eq!(
        verify::chain_digest(three.into_iter()),
        digest(&[two, digest(b"c")].concat())
    );
}

#[tokio::test]
async fn clients_prove_themselves_where_asked() {
    let (chain, stranger) = (chain(), chain());
    let mut server = server(&chain);
    let without = client(&chain);
    let with = |own| ClientTls {
        certificates: shown(own),
        ..client(&chain)
    };
    assert!(meet(&server, &with(&chain.client)).await);
    server.client_authorities = vec![Pem::Inline(chain.root.clone())];
    assert!(meet(&server, &with(&chain.client)).await);
    assert!(!meet(&server, &without).await);
    assert!(!meet(&server, &with(&stranger.client)).await);
}

#[tokio::test]
async fn suites_and_groups_are_those_named() {
    let chain = chain();
    let with = |suites: &[CipherSuite], groups: &[Curve]| {
        let (cipher_suites, groups) = (suites.to_vec(), groups.to_vec());
        let server = ServerTls {
            cipher_suites: cipher_suites.clone(),
            groups: groups.clone(),
            ..server(&chain)
        };
        let client = ClientTls {
            cipher_suites,
            groups,
            ..client(&chain)
        };
        (server, client)
    };
    let aes = with(&[CipherSuite::Tls13Aes128Gcm], &[Curve::X25519]);
    let chacha = with(&[CipherSuite::Tls13Chacha20Poly1305], &[Curve::P256]);
    let older = with(&[CipherSuite::EcdheEcdsaAes128Gcm], &[]);
    assert!(meet(&aes.0, &aes.1).await && meet(&chacha.0, &chacha.1).await);
    assert!(
        !meet(
            &aes.0,
            &ClientTls {
                groups: Vec::new(),
                versions: only13(),
                ..chacha.1.clone()
            }
        )
        .await
    );
    assert!(!meet(&with(&[], &[Curve::X25519]).0, &with(&[], &[Curve::P256]).1).await);
    // Suites of TLS 1.2 say nothing about TLS 1.3.
    assert!(meet(&older.0, &aes.1).await);
    for curve in [Curve::P384, Curve::X25519MlKem768, Curve::Secp256r1MlKem768] {
        let both = with(&[], &[curve]);
        assert!(meet(&both.0, &both.1).await, "{curve:?}");
    }
}

fn only13() -> crate::settings::Versions {
    crate::settings::Versions {
        tls12: false,
        tls13: true,
    }
}

#[tokio::test]
async fn secrets_are_written_where_asked() {
    let chain = chain();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys");
    let server = ServerTls {
        key_log: Some(file.clone()),
        ..server(&chain)
    };
    assert!(meet(&server, &client(&chain)).await);
    // A thread of the log's own writes it.
    let line = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        loop {
            let text = std::fs::read_to_string(&file).unwrap();
            let mut whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some(line) = whole.find(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) {
                break line.trim_end().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let line = line.await.unwrap();
    let words: Vec<_> = line.split(' ').collect();
    assert!(
        words.len() == 3 && words[1].len() == 64 && words[2].bytes().all(|b| b.is_ascii_hexdigit()),
        "{line}"
    );
    let nowhere = ServerTls {
        key_log: Some(dir.path().join("no/such")),
        ..server
    };
    let error = build::server("in", &nowhere).unwrap_err().to_string();
    assert!(error.starts_with("in.tlsSettings.masterKeyLog: "), "{error}");
}
