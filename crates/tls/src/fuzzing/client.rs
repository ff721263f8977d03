//! Entries of the client's handshake.

use super::ends::fixed;
use crate::client::{Client, Hello, Judge, MAX_CHANGES, Offer, Shown};
use crate::codec::{MAX_FLIGHT, MAX_HELLO, record};
use crate::error::Error;
use crate::group::X25519Secret;
use crate::reality::AuthKey;
use crate::reality::certificate::{MLDSA65_KEY_LEN, signature};
use crate::reality::proof::Proof;

/// Accepts everybody.
struct Anyone;

impl Judge for Anyone {
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), Error> {
        assert!(!shown.chain.is_empty() && shown.server_hello.len() <= MAX_HELLO);
        Ok(())
    }

    fn signature(&mut self, _: &[u8], _: u16, message: &[u8], _: &[u8]) -> Result<(), Error> {
        assert!(message.starts_with(&[b' '; 64]));
        Ok(())
    }
}

/// The hello that every input answers.
pub(crate) fn hello() -> Hello {
    let offer = Offer {
        server_name: Some("a.test"),
        alpn: &["h2", "http/1.1"],
        ..Offer::default()
    };
    Hello::plain(&offer, &mut fixed(1)).expect("short names")
}

/// How a handshake ended: what was taken, what was said, whether it is through, and the fault.
type Outcome = (usize, Vec<u8>, bool, Option<Error>);

fn feed(data: &[u8], size: usize) -> Outcome {
    let mut client = Client::start(hello(), Anyone, None).expect("a hello that fits");
    let mut said = client.take_output();
    let (mut held, mut taken) = (Vec::new(), 0);
    for piece in data.chunks(size) {
        held.extend_from_slice(piece);
        let outcome = client.receive(&mut held, &mut fixed(9));
        said.extend(client.take_output());
        match outcome {
            Ok(n) => {
                held.drain(..n);
                taken += n;
            }
            Err(error) => {
                assert!(
                    client.receive(&mut [0; 5], &mut fixed(9)).is_err(),
                    "a handshake that failed goes on"
                );
                return (taken, said, false, Some(error));
            }
        }
        if client.is_done() {
            break;
        }
    }
    (taken, said, client.is_done(), None)
}

/// What a server may answer: where it is cut changes nothing, and no more is taken than the limits say.
pub(super) fn server_flight(data: &[u8]) {
    let (taken, said, done, error) = feed(data, data.len().max(1));
    let most = 2 * MAX_HELLO + MAX_FLIGHT;
    // Each byte may have a record of its own.
    let records = most + MAX_CHANGES as usize;
    assert!(taken <= most + records * (record::HEAD + 17 + record::MAX_PLAIN));
    for size in [1, 7] {
        let (again, said_again, done_again, error_again) = feed(data, size);
        assert_eq!(
            (done, &error),
            (done_again, &error_again),
            "where it is cut makes a difference"
        );
        // An error takes back what was taken in the same call.
        assert!(error.is_some() || (taken == again && said == said_again));
    }
}

/// The key of the client that is shown certificates.
pub(crate) fn auth() -> AuthKey {
    let server = X25519Secret::new(&[9; 32]).public();
    AuthKey::new(&X25519Secret::new(&[1; 32]), &server, &[3; 32]).expect("a key of large order")
}

/// A certificate that a server of REALITY shows, or whoever answers in its place.
pub(super) fn reality_certificate(data: &[u8]) {
    let key = auth();
    let shown = Shown {
        chain: &[data],
        client_hello: b"a client's hello",
        server_hello: b"a server's hello",
    };
    match Proof::of(&key, &shown, None) {
        Proof::Genuine(public) => assert!(data.ends_with(&signature(key.as_bytes(), &public))),
        other => assert_eq!(other, Proof::Other, "nothing more is asked for"),
    }
    let never = Proof::of(&key, &shown, Some(&[0; MLDSA65_KEY_LEN]));
    assert!(!matches!(never, Proof::Genuine(_)), "a key that signs nothing");
}
