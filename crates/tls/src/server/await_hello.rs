//! The server's first state: a client's hello has to come, or its second one.

use super::flight::{Flight, Hellos};
use super::{Agreed, AwaitFinished, Config, MAX_CHANGES};
use crate::codec::{self, ClientHello, Joiner, MAX_HELLO, extension, record, write_server_hello};
use crate::error::{Alert, Error, unexpected};
use crate::group::{self, Group};
use crate::schedule::Transcript;
use crate::suite::CipherSuite;

/// What was said before the second hello.
struct Retry {
    first: Vec<u8>,
    request: Vec<u8>,
    suite: CipherSuite,
    group: Group,
}

/// Waits for a client's hello.
pub struct AwaitHello {
    joiner: Joiner,
    retry: Option<Retry>,
    /// How many records with a change_cipher_spec may still come.
    changes: u32,
}

impl Default for AwaitHello {
    fn default() -> Self {
        AwaitHello {
            joiner: Joiner::new(MAX_HELLO, MAX_HELLO),
            retry: None,
            changes: MAX_CHANGES,
        }
    }
}

fn illegal(what: &'static str) -> Error {
    Error::peer(Alert::IllegalParameter, what)
}

fn missing(what: &'static str) -> Error {
    Error::peer(Alert::MissingExtension, what)
}

impl AwaitHello {
    /// Reads what the client has sent, and appends to `out` what is to be sent to it: a HelloRetryRequest, after which the state stays
    /// the same, or the whole flight. Returns the bytes that are done with.
    ///
    /// # Errors
    /// Whatever is wrong. The state must not be used any more.
    pub fn read(
        &mut self,
        config: &Config,
        input: &[u8],
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<AwaitFinished>), Error> {
        let mut used = 0;
        while let Some(record) = record::Record::first(input.get(used..).unwrap_or_default())? {
            used += record.len();
            match (record.kind, record.content) {
                (record::HANDSHAKE, content) => self.joiner.push(content)?,
                // Only behind a hello (RFC 8446 section 5).
                (record::CHANGE_CIPHER_SPEC, [1]) if self.retry.is_some() && self.joiner.is_between() => {
                    let left = self.changes.checked_sub(1);
                    self.changes = left.ok_or(unexpected("more records with a change_cipher_spec than are taken"))?;
                    continue;
                }
                (record::ALERT, [_, description]) => return Err(Error::Alerted(*description)),
                _ => return Err(unexpected("a record of another kind where ClientHello had to come")),
            }
            let Some(message) = self.joiner.next_message()? else {
                continue;
            };
            let message = message.bytes.to_vec();
            if !self.joiner.is_between() {
                return Err(unexpected("something behind ClientHello"));
            }
            let Some(message) = codec::Message::first(&message, MAX_HELLO)? else {
                continue;
            };
            let hello = ClientHello::read(message)?;
            if let Some(next) = self.answer(config, &hello, random, out)? {
                return Ok((used, Some(next)));
            }
        }
        Ok((used, None))
    }

    /// The flight; none if the client is asked for another hello.
    fn answer(
        &mut self,
        config: &Config,
        hello: &ClientHello<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Vec<u8>,
    ) -> Result<Option<AwaitFinished>, Error> {
        let suite = judge(config, hello)?;
        let alpn = protocol(config, hello)?;
        let shares = hello
            .extensions
            .key_shares()?
            .ok_or(missing("ClientHello without key_share"))?;
        let of = |group: &Group| Some((*group, shares.get(group.id())?));
        let found = match &self.retry {
            None => config.groups.iter().find_map(of),
            Some(retry) => Some(again(retry, hello, suite)?),
        };
        let mut transcript = match &self.retry {
            None => Transcript::new(suite.hash()),
            Some(retry) => {
                let mut transcript = Transcript::after_retry(suite.hash(), &retry.first);
                transcript.add(&retry.request);
                transcript
            }
        };
        let Some((group, share)) = found else {
            self.ask_again(config, hello, suite, out)?;
            return Ok(None);
        };

        let (own, shared) = group::answer(group, share, random)?;
        let mut server_random = [0; 32];
        random(&mut server_random);
        let share = extension::body::key_share(group.id(), &own)?;
        let extensions = [
            (extension::SUPPORTED_VERSIONS, &extension::TLS13.to_be_bytes()[..]),
            (extension::KEY_SHARE, &share),
        ];
        let mut server = Vec::with_capacity(128 + share.len());
        write_server_hello(&mut server, &server_random, hello.session_id, suite.id(), &extensions)?;
        transcript.add(hello.bytes);
        transcript.add(&server);

        let chosen = alpn.map(|name| extension::body::names(&[name])).transpose()?;
        let extensions: Vec<_> = chosen.iter().map(|body| (extension::ALPN, &body[..])).collect();
        let agreed = Agreed {
            suite,
            group,
            alpn: alpn.map(<[u8]>::to_vec),
            server_name: hello.extensions.server_name()?.map(<[u8]>::to_vec),
        };
        let hellos = Hellos {
            client: hello,
            server: &server,
            agreed: &agreed,
            shared: &shared,
            transcript,
        };
        let mut flight = Flight::new(hellos, &extensions, &*config.identity, config.key_log.as_deref())?;

        record::write(out, record::HANDSHAKE, 3, &server);
        if self.retry.is_none() {
            change(hello, out);
        }
        for part in flight.messages.concat().chunks(record::MAX_PLAIN) {
            flight.sealing.push(record::HANDSHAKE, part, out)?;
        }
        Ok(Some(AwaitFinished::new(flight, agreed, self.changes)))
    }

    /// Asks the client for a share of a group that it has named and sent none of (RFC 8446 section 4.1.4).
    fn ask_again(
        &mut self,
        config: &Config,
        hello: &ClientHello<'_>,
        suite: CipherSuite,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let groups = hello.extensions.supported_groups()?;
        let groups = groups.ok_or(missing("ClientHello without supported_groups"))?;
        let group = config.groups.iter().find(|group| groups.contains(group.id()));
        let group = *group.ok_or(Error::peer(Alert::HandshakeFailure, "no group that both ends have"))?;
        let extensions = [
            (extension::SUPPORTED_VERSIONS, &extension::TLS13.to_be_bytes()[..]),
            (extension::KEY_SHARE, &group.id().to_be_bytes()),
        ];
        let mut request = Vec::new();
        write_server_hello(
            &mut request,
            &codec::RETRY_RANDOM,
            hello.session_id,
            suite.id(),
            &extensions,
        )?;
        record::write(out, record::HANDSHAKE, 3, &request);
        change(hello, out);
        self.retry = Some(Retry {
            first: hello.bytes.to_vec(),
            request,
            suite,
            group,
        });
        self.joiner.limit(MAX_HELLO, MAX_HELLO);
        Ok(())
    }
}

/// What middleboxes want to see behind a server's first hello (RFC 8446 appendix D.4), if the client wants it so.
fn change(hello: &ClientHello<'_>, out: &mut Vec<u8>) {
    if !hello.session_id.is_empty() {
        record::write(out, record::CHANGE_CIPHER_SPEC, 3, &[1]);
    }
}

/// The suite, if this client can be served at all.
fn judge(config: &Config, hello: &ClientHello<'_>) -> Result<CipherSuite, Error> {
    if !hello.offers_tls13()? {
        return Err(Error::peer(Alert::ProtocolVersion, "a client without TLS 1.3"));
    }
    if hello.compression != [0] {
        return Err(illegal("a client of TLS 1.3 that compresses"));
    }
    let mut behind = hello
        .extensions
        .iter()
        .skip_while(|(kind, _)| *kind != extension::PRE_SHARED_KEY);
    if behind.nth(1).is_some() {
        return Err(illegal("pre_shared_key is not the last extension"));
    }
    let suite = config.suites.iter().find(|suite| hello.suites.contains(suite.id()));
    suite
        .copied()
        .ok_or(Error::peer(Alert::HandshakeFailure, "no suite that both ends have"))
}

fn protocol<'a>(config: &'a Config, hello: &ClientHello<'_>) -> Result<Option<&'a [u8]>, Error> {
    let Some(offered) = hello.extensions.alpn()?.filter(|_| !config.alpn.is_empty()) else {
        return Ok(None);
    };
    let chosen = config.alpn.iter().find(|name| offered.contains(&name.as_slice()));
    let none = Error::peer(
        Alert::NoApplicationProtocol,
        "no application protocol that both ends have",
    );
    chosen.map(|name| Some(name.as_slice())).ok_or(none)
}

/// The share of the second hello, which is to be the first but for it.
fn again<'a>(retry: &Retry, hello: &ClientHello<'a>, suite: CipherSuite) -> Result<(Group, &'a [u8]), Error> {
    let other = illegal("a second ClientHello that is not the first with another share");
    let Some(first) = codec::Message::first(&retry.first, MAX_HELLO)? else {
        return Err(other);
    };
    let first = ClientHello::read(first)?;
    let same = first.random == hello.random
        && first.session_id == hello.session_id
        && first.suites == hello.suites
        && first.extensions.supported_groups()? == hello.extensions.supported_groups()?
        && retry.suite == suite;
    let shares = hello.extensions.key_shares()?;
    let mut shares = shares.iter().flat_map(|shares| shares.iter());
    match (shares.next(), shares.next()) {
        (Some(share), None) if same && share.group == retry.group.id() => Ok((retry.group, share.key)),
        _ => Err(other),
    }
}
