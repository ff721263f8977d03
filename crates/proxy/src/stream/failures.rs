//! What leaves a connection of which a layer has failed: nothing in the clear, and the alert that the peer is owed.

use std::time::Duration;

use sealway_aead::Suite;
use sealway_net::sock::Sock;
use sealway_tls::records::{HEADER, Records, Schedule, Version};
use sealway_tls::schedule::Keys;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use super::Stream;
use crate::Error;
use crate::carrier::Carrier;
use crate::closing::LINGER;
use crate::layer::Seal;
use crate::people::Presence;
use crate::relay::Relay;
use crate::settings::Timeouts;
use crate::stats::Traffic;
use crate::tls::tests::{ends, suites};

const PAYLOAD: &[u8] = b"payload that nobody on the way may read";

/// TLS 1.2, which has no further keys.
struct NoKeys;

impl Schedule for NoKeys {
    fn next_sending(&mut self) -> Result<Keys, sealway_tls::Error> {
        Err(sealway_tls::Error::Library("no further keys"))
    }

    fn next_receiving(&mut self) -> Result<Keys, sealway_tls::Error> {
        self.next_sending()
    }

    fn takes_tickets(&self) -> bool {
        false
    }

    fn ticket(&mut self, _: &[u8]) -> Result<(), sealway_tls::Error> {
        Ok(())
    }
}

fn bare() -> (Stream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    (Stream::new(Sock::Unix(a), Traffic::default()), b)
}

/// One end, whose key has one record of payload left, and one for an alert; and the bare socket at the other.
fn nearly_spent() -> (Stream, UnixStream) {
    let (mut stream, peer) = bare();
    let keys = Keys::new(Suite::Aes128Gcm, &[1; 16], [2; 12], (1 << 24) - 2).unwrap();
    let records = Records::new(Version::Tls12, &keys, &keys, Box::new(NoKeys)).unwrap();
    stream.tls = Some(Box::new(records));
    (stream, peer)
}

/// Kinds of the records that these bytes are, all of them whole.
fn kinds(mut wire: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = wire.split_first_chunk::<HEADER>() {
        assert_eq!(head[1..3], [3, 3], "no record");
        kinds.push(head[0]);
        wire = &rest[usize::from(u16::from_be_bytes([head[3], head[4]]))..];
    }
    assert!(wire.is_empty());
    kinds
}

fn holds_payload(wire: &[u8]) -> bool {
    wire.windows(8)
        .any(|window| PAYLOAD.windows(8).any(|part| part == window))
}

#[tokio::test]
async fn a_relay_writes_nothing_that_could_not_be_sealed() {
    let (near, mut client) = nearly_spent();
    let (far, mut target) = bare();
    let relay = tokio::spawn(Relay::new(near, far, Timeouts::default(), Presence::nobody()).run());
    target.write_all(b"x").await.unwrap();
    let mut first = [0; HEADER + 8 + 1 + 16];
    client.read_exact(&mut first).await.unwrap();
    target.write_all(PAYLOAD).await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(relay.await.unwrap().is_err());
    assert!(!holds_payload(&rest), "payload in the clear");
    assert_eq!(kinds(&first), [23]);
    assert_eq!(kinds(&rest), [21], "the peer is told that this was not the end");
}

#[tokio::test]
async fn every_way_to_seal_leaves_nothing_in_the_clear() {
    type Way = fn(&mut Stream) -> Result<(), Error>;
    let ways: [(&str, Way); 5] = [
        ("seal", |stream| stream.seal(PAYLOAD)),
        ("parts", |stream| {
            stream
                .seal_parts(&[std::io::IoSlice::new(PAYLOAD)], usize::MAX)
                .map(drop)
        }),
        ("whole", |stream| stream.seal_whole(PAYLOAD)),
        ("frames", |stream| stream.wrap_tls(PAYLOAD)),
        ("prefix", |stream| {
            stream.set_prefix(PAYLOAD.to_vec());
            stream.seal_end()
        }),
    ];
    for (name, way) in ways {
        let (mut stream, mut peer) = nearly_spent();
        stream.seal(b"x").unwrap();
        assert!(way(&mut stream).is_err(), "{name}");
        assert!(stream.seal(b"more").is_err(), "{name}: something is missing before it");
        stream.leave(b"words").await;
        drop(stream);
        let mut wire = Vec::new();
        peer.read_to_end(&mut wire).await.unwrap();
        assert!(!holds_payload(&wire), "{name}");
        assert_eq!(kinds(&wire), [23, 21], "{name}");
    }
}

/// A body that cannot be sealed, half of which was written.
struct Fails;

impl Seal for Fails {
    fn max_payload(&self) -> usize {
        1000
    }

    fn overhead(&self) -> usize {
        0
    }

    fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend_from_slice(payload);
        Err(Error::Unsupported("sealing"))
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_layer_above_that_fails_leaves_nothing_either() {
    for with_tls in [false, true] {
        let (mut stream, mut peer) = if with_tls { nearly_spent() } else { bare() };
        stream.set_sealer(Box::new(Fails));
        assert!(stream.seal(PAYLOAD).is_err());
        assert!(!stream.wants_flush());
        assert!(stream.wrap(PAYLOAD).is_err(), "something is missing before it");
        stream.flush().await.unwrap();
        drop(stream);
        let mut wire = Vec::new();
        peer.read_to_end(&mut wire).await.unwrap();
        assert_eq!(wire, b"");
    }
}

/// What one end of a relay hears when it has sent a record that is not authentic; how long the relay took to end. Before that it
/// was sent more than its socket takes, which it reads or does not.
async fn after_a_wrong_record(suite: rustls::SupportedCipherSuite, reads: bool) -> (Vec<u8>, Duration) {
    let (near, mut client) = ends(suite).await;
    let (far, mut target) = bare();
    let Some(Sock::Unix(sock)) = near.carrier.sock() else {
        panic!("unix")
    };
    SockRef::from(sock).set_send_buffer_size(8 << 10).unwrap();
    target.write_all(&[7; 20_000]).await.unwrap();
    let relay = tokio::spawn(Relay::new(near, far, Timeouts::default(), Presence::nobody()).run());
    let Carrier::Sock(Sock::Unix(raw)) = &mut client.carrier else {
        panic!("unix")
    };
    // It has written what it can.
    tokio::time::sleep(Duration::from_millis(10)).await;
    raw.write_all(&[23, 3, 3, 0, 40]).await.unwrap();
    raw.write_all(&[9; 40]).await.unwrap();
    let since = Instant::now();
    let reading = async {
        let mut came = Vec::new();
        if reads {
            // It may be cut once the alert was there.
            while raw.read_buf(&mut came).await.is_ok_and(|got| got > 0) {}
        }
        came
    };
    let (came, ended) = tokio::join!(reading, timeout(Duration::from_secs(60), relay));
    assert!(ended.unwrap().unwrap().is_err());
    (came, since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_record_is_answered_with_an_alert_behind_what_waits() {
    for suite in suites() {
        let (came, took) = after_a_wrong_record(suite, true).await;
        let sent = kinds(&came);
        let (last, alerts) = match suite.tls13() {
            // Sealed, it looks like payload but for its length.
            Some(_) => (came.len() - (HEADER + 2 + 1 + 16), 0),
            None => (0, 1),
        };
        assert_eq!(sent.iter().filter(|&&kind| kind == 21).count(), alerts, "{sent:?}");
        assert!(alerts == 1 || came[last..][..HEADER] == [23, 3, 3, 0, 19], "{suite:?}");
        assert!(alerts == 0 || sent.last() == Some(&21), "{sent:?}");
        assert!(took < LINGER, "{took:?}");
        // Who does not read is not waited for.
        let (_, took) = after_a_wrong_record(suite, false).await;
        assert!(LINGER <= took && took < 2 * LINGER, "{took:?}");
    }
}
