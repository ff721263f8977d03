//! `tls` beside Xray's: what is seen of a server, and hashes of certificates.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_ECDSA_P384_SHA384};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::{Ran, free_port, ours, ran, xray};
use crate::common::{private_folder, run, sealway};

/// Certificates of a server, its own and that of the authority that signed it.
struct Chain {
    own: rcgen::Certificate,
    authority: CertifiedIssuer<'static, KeyPair>,
    key: KeyPair,
}

fn chain() -> Chain {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority
        .distinguished_name
        .push(DnType::CommonName, "An authority of tests");
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let authority = CertifiedIssuer::self_signed(authority, pair).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["a.example", "*.b.example"].map(str::to_owned)).unwrap();
    let own = own.signed_by(&key, &authority).unwrap();
    Chain { own, authority, key }
}

/// A server that shakes hands with whoever comes, until the test ends. Gives its port.
fn server(chain: &Chain, version: &'static SupportedProtocolVersion, group: &'static dyn SupportedKxGroup) -> u16 {
    let provider = CryptoProvider {
        kx_groups: vec![group],
        ..default_provider()
    };
    let shown = vec![chain.own.der().clone(), chain.authority.der().clone()];
    let key = PrivateKeyDer::try_from(chain.key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(shown, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let mut tls = ServerConnection::new(config).unwrap();
                // Whoever dislikes the certificate goes away.
                while tls.complete_io(&mut stream).is_ok_and(|(read, _)| read > 0) {}
            });
        }
    });
    port
}

/// The same, for clients that trust this authority alone.
fn trusting(mut command: Command, authority: &Path) -> Command {
    command.env("SSL_CERT_FILE", authority).env("SSL_CERT_DIR", "/nowhere");
    command
}

#[test]
fn a_server_is_seen_as_xray_sees_it() {
    let folder = private_folder();
    let there = folder.path();
    let chain = chain();
    let authority = there.join("authority.pem");
    fs::write(&authority, chain.authority.pem()).unwrap();
    let hybrid = server(&chain, &rustls::version::TLS13, kx_group::X25519MLKEM768);
    let plain = server(&chain, &rustls::version::TLS12, kx_group::SECP256R1);
    let closed = free_port();
    let run = |command| ran(trusting(command, &authority), there);
    let parts = |ran: &Ran| -> Vec<String> { ran.stdout.split("-------------------\n").map(str::to_owned).collect() };
    for (words, code, says) in [
        (
            vec!["-ip", "127.0.0.1", &format!("a.example:{hybrid}")],
            0,
            "true (X25519MLKEM768)",
        ),
        (
            vec!["--ip=127.0.0.1", &format!("a.b.example:{plain}")],
            0,
            "false (CurveP256)",
        ),
        // The name is not among those of the certificate.
        (
            vec!["-ip", "127.0.0.1", &format!("other.example:{hybrid}")],
            0,
            "certs count: 2",
        ),
        (vec![&*format!("localhost:{plain}")], 0, "TLS 1.2"),
        (vec![&*format!("127.0.0.1:{closed}")], 1, "Pinging without SNI"),
        (vec!["-ip", "nope", "a.example"], 1, "TLS ping:  a.example"),
        (vec!["a.example.invalid"], 1, "TLS ping:  a.example.invalid"),
        (vec![], 1, ""),
    ] {
        let words = [&["tls", "ping"], &words[..]].concat();
        let ours = run(ours(&words));
        assert_eq!(
            (ours.code, ours.stderr.is_empty()),
            (code, code == 0),
            "{words:?}: {ours:?}"
        );
        assert!(ours.stdout.contains(says), "{words:?}: {ours:?}");
        let Some(theirs) = xray(&words) else { continue };
        let theirs = run(theirs);
        assert_eq!(theirs.code, code, "{words:?}: {theirs:?}");
        let (mine, other) = (parts(&ours), parts(&theirs));
        assert_eq!(mine.len(), other.len(), "{words:?}: {ours:?} {theirs:?}");
        for (mine, other) in mine.iter().zip(&other) {
            // Why it failed is said in other words.
            let [mine, other] = [mine, other].map(|text| text.split_inclusive("Handshake failure:  ").next());
            assert_eq!(mine, other, "{words:?}");
        }
    }
}

#[test]
fn our_own_words_say_whom_a_certificate_is_for_and_until_when() {
    let folder = private_folder();
    let there = folder.path();
    let chain = chain();
    let authority = there.join("authority.pem");
    fs::write(&authority, chain.authority.pem()).unwrap();
    let port = server(&chain, &rustls::version::TLS13, kx_group::X25519);
    let ping = |name: &str| {
        let command = sealway(&["tls", "ping", "--ip", "127.0.0.1", &format!("{name}:{port}")]);
        ran(trusting(command, &authority), there)
    };
    let good = ping("a.example").answer();
    for says in [
        "TLS 1.3",
        "X25519, not post-quantum",
        "a.example *.b.example",
        "4096-01-01T00:00:00Z",
    ] {
        assert!(good.matches(says).count() >= 2, "{says}: {good}");
    }
    assert!(good.ends_with("yes\n"), "{good}");
    let bad = ping("c.example");
    bad.says(9, &[]);
    let said = "no: certificate is valid for other names\n";
    assert!(bad.stdout.ends_with(said), "{bad:?}");
    run(&["tls", "ping", &format!("127.0.0.1:{}", free_port())]).says(7, &[]);
    for words in [
        &["tls", "ping", "a b"][..],
        &["tls", "ping", "a.example:0"],
        &["tls", "cert"],
        &["tls"],
    ] {
        run(words).says(2, &[]);
    }
}

#[test]
fn hashes_of_chains_are_those_of_xray() {
    let folder = private_folder();
    let there = folder.path();
    let chain = chain();
    fs::write(there.join("fullchain.pem"), chain.own.pem() + &chain.authority.pem()).unwrap();
    fs::write(there.join("own.der"), chain.own.der()).unwrap();
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(there.join("wrong.pem"), wrong).unwrap();
    let own = ran(sealway(&["tls", "hash", "fullchain.pem"]), there);
    assert_eq!((own.code, own.stdout.lines().count()), (0, 3), "{own:?}");
    assert!(own.stdout.contains("CA <An authority of tests> SHA256:"), "{own:?}");
    for words in [&["tls", "hash"][..], &["tls", "hash", "-cert", "own.der"]] {
        let mine = ran(ours(words), there);
        assert_eq!(mine.code, 0, "{mine:?}");
        let Some(theirs) = xray(words) else { return };
        assert_eq!(mine.stdout, ran(theirs, there).stdout, "{words:?}");
    }
    for (file, code) in [("wrong.pem", 2), ("absent.pem", 10)] {
        ran(sealway(&["tls", "hash", file]), there).refuses(code, &[]);
    }

    // What is made is read by both.
    let make = sealway(&["tls", "cert", "a.example", "192.0.2.1", "--file", "made"]);
    ran(make, there).refuses(0, &[]);
    let hash = ran(sealway(&["tls", "hash", "made.crt"]), there);
    if let Some(theirs) = xray(&["tls", "hash", "-cert", "made.crt"]) {
        let theirs = ran(theirs, there).stdout;
        let [ours, theirs] = [&hash.stdout, &theirs].map(|text| text.lines().next().unwrap().rsplit(' ').next());
        assert_eq!(ours, theirs);
    }
    for words in [["certChainHash"], ["leafCertHash"]] {
        ran(ours(&[&["tls"], &words[..]].concat()), there).says(2, &["xray tls hash"]);
    }
}
