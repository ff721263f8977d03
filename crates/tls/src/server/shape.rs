//! A flight that looks from outside like another server's (what REALITY does; written down nowhere but in its programs).

use super::flight::{Flight, Hellos};
use super::{Agreed, AwaitFinished, Identity};
use crate::codec::{ClientHello, ServerHello, record};
use crate::error::{Alert, Error};
use crate::group::{self, Group};
use crate::records::HANDSHAKE;
use crate::schedule::{KeyLog, Transcript};
use crate::suite::CipherSuite;

/// How long records are, by their headers: what follows the header, so that 17 bytes more than what a record carries is the least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lengths {
    /// EncryptedExtensions, Certificate, CertificateVerify and Finished have a record each.
    Each([usize; 4]),
    /// They share one.
    Together(usize),
}

/// The flight of the server that this one is to look like.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Its ServerHello. All of it stays but the key: random bytes, suite, the order of extensions.
    pub hello: ServerHello<'a>,
    /// The records that follow its change_cipher_spec.
    pub flight: Lengths,
    /// The records behind its Finished that it sends without waiting for the client's.
    pub next: &'a [usize],
    /// How many records with a change_cipher_spec it takes from a client. `u32::MAX`: any number that matters.
    pub changes: u32,
}

/// Answers a client's hello in the shape of another server's flight, which is appended to `out`: ServerHello, change_cipher_spec, the
/// four messages, each padded to the length of its record, and records that carry nothing where [`Shape::next`] says so.
///
/// Whether the client offered what the other server chose is looked at: group, suite and session id. Its EncryptedExtensions is empty,
/// and the scheme of the signature is what the identity says, whatever the client offered.
///
/// Once the client has finished, records of given lengths are [`Records::push_nothing`](crate::records::Records::push_nothing).
///
/// # Errors
/// [`Error::Given`] for a ServerHello that is none of TLS 1.3 or asks for another hello, and for a message that does not fit in its
/// record; [`Error::Peer`] for a client without a usable share of the group. Then nothing is appended.
pub fn answer_in_shape(
    client: &ClientHello<'_>,
    shape: &Shape<'_>,
    identity: &dyn Identity,
    log: Option<&dyn KeyLog>,
    random: &mut dyn FnMut(&mut [u8]),
    out: &mut Vec<u8>,
) -> Result<AwaitFinished, Error> {
    let (suite, group) = chosen(client, &shape.hello)?;
    let shares = client.extensions.key_shares()?;
    let share = shares.and_then(|shares| shares.get(group.id()));
    let share = share.ok_or(Error::peer(
        Alert::IllegalParameter,
        "no key share of the group that was chosen",
    ))?;
    let (own, shared) = group::answer(group, share, random)?;
    let server = shape.hello.with_key(&own)?;
    let agreed = Agreed {
        suite,
        group,
        alpn: None,
        server_name: client.extensions.server_name()?.map(<[u8]>::to_vec),
    };
    let mut transcript = Transcript::new(suite.hash());
    transcript.add(client.bytes);
    transcript.add(&server);
    let hellos = Hellos {
        client,
        server: &server,
        agreed: &agreed,
        shared: &shared,
        transcript,
    };
    let mut flight = Flight::new(hellos, &[], identity, log)?;

    let mut wire = Vec::with_capacity(8 << 10);
    record::write(&mut wire, HANDSHAKE, 3, &server);
    record::write(&mut wire, record::CHANGE_CIPHER_SPEC, 3, &[1]);
    match shape.flight {
        Lengths::Each(lengths) => {
            for (message, length) in flight.messages.iter().zip(lengths) {
                flight.sealing.push_of_length(HANDSHAKE, message, length, &mut wire)?;
            }
        }
        Lengths::Together(length) => {
            let all = flight.messages.concat();
            flight.sealing.push_of_length(HANDSHAKE, &all, length, &mut wire)?;
        }
    }
    for length in shape.next {
        flight.records.push_nothing(*length, &mut wire)?;
    }
    out.append(&mut wire);
    Ok(AwaitFinished::new(flight, agreed, shape.changes))
}

/// What the other server chose, if it is one that this crate can do and the client offered.
fn chosen(client: &ClientHello<'_>, hello: &ServerHello<'_>) -> Result<(CipherSuite, Group), Error> {
    let not = |what| Err(Error::Given(what));
    if hello.is_retry() {
        return not("a server that asks for another hello");
    }
    if hello.version()? != crate::codec::extension::TLS13 {
        return not("a server without TLS 1.3");
    }
    if hello.session_id != client.session_id {
        return not("a ServerHello that answers another hello");
    }
    let suite = CipherSuite::from_id(hello.suite).filter(|suite| client.suites.contains(suite.id()));
    let group = hello.key_share()?.and_then(|share| {
        let group = Group::from_id(share.group)?;
        (share.key.len() == group.server_len()).then_some(group)
    });
    match (suite, group) {
        (Some(suite), Some(group)) => Ok((suite, group)),
        (None, _) => not("a server that chose another suite"),
        (_, None) => not("a server that chose another group"),
    }
}
