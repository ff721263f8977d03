//! The states of a client: each takes the one message that it waits for, and is used up by it.

use super::{Done, Hello, Judge, Shown, unexpected};
use crate::codec::extension::{self, TLS13};
use crate::codec::{
    self, Certificate, CertificateVerify, CompressedCertificate, EncryptedExtensions, Extensions, Kind, Message,
    ServerHello, write_certificate, write_encrypted_extensions, write_finished,
};
use crate::error::{Alert, Error};
use crate::group::Group;
use crate::schedule::{Handshake, KeyLog, Keys, Logged, Transcript};
use crate::suite::CipherSuite;

/// Where a handshake stands.
pub(super) enum State {
    Hello(Box<WaitHello>),
    Extensions(Box<WaitExtensions>),
    Certificate(Box<WaitCertificate>),
    Verify(Box<WaitVerify>),
    Finished(Box<WaitFinished>),
}

/// What follows from a message.
pub(super) enum Next {
    /// Nothing to be done.
    Wait(State),
    /// Another hello is to be sent.
    Retry { state: State, hello: Vec<u8> },
    /// From here on records are sealed: with the first keys by us, with the second by the server.
    Sealed { state: State, secrets: (Keys, Keys) },
    /// Our last flight is to be sent, and the handshake is through.
    Done { flight: Vec<u8>, done: Done },
}

impl State {
    pub(super) fn begin(hello: Hello, message: Vec<u8>) -> State {
        State::Hello(Box::new(WaitHello {
            hello,
            message,
            retried: None,
        }))
    }

    pub(super) fn take<J: Judge>(
        self,
        message: Message<'_>,
        judge: &mut J,
        log: Option<&dyn KeyLog>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Next, Error> {
        match self {
            State::Hello(state) => state.take(message, log, random),
            State::Extensions(state) => state.take(message),
            State::Certificate(state) => state.take(message, judge),
            State::Verify(state) => state.take(message, judge),
            State::Finished(state) => state.take(message, log),
        }
    }
}

/// Extensions that EncryptedExtensions may have.
const ENCRYPTED: [u16; 6] = [
    extension::SERVER_NAME,
    extension::SUPPORTED_GROUPS,
    extension::ALPN,
    extension::APPLICATION_SETTINGS,
    extension::TRUST_ANCHORS,
    extension::ENCRYPTED_CLIENT_HELLO,
];
/// Those of TLS 1.2 and of certificates. A server that answers one of them there is told by browsers that it cannot be read.
const MISPLACED: [u16; 5] = [
    extension::STATUS_REQUEST,
    extension::EC_POINT_FORMATS,
    extension::SIGNED_CERTIFICATE_TIMESTAMP,
    extension::EXTENDED_MAIN_SECRET,
    extension::SESSION_TICKET,
];
/// Extensions that a certificate of a chain may have.
const OF_CERTIFICATES: [u16; 3] = [
    extension::STATUS_REQUEST,
    extension::SIGNED_CERTIFICATE_TIMESTAMP,
    extension::TRUST_ANCHORS,
];
/// Signature schemes that TLS 1.3 has no use for but in certificates: RSA with PKCS #1 (RFC 8446 section 4.2.3).
const OF_CHAINS: [u16; 3] = [0x0401, 0x0501, 0x0601];

fn malformed(what: &'static str) -> Error {
    Error::peer(Alert::DecodeError, what)
}

/// Whether a number is one of those that stand for nothing (RFC 8701): 0x?a?a.
fn is_made_up(number: u16) -> bool {
    let [high, low] = number.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

fn illegal(what: &'static str) -> Error {
    Error::peer(Alert::IllegalParameter, what)
}

fn unsolicited() -> Error {
    Error::peer(Alert::UnsupportedExtension, "an extension that was not asked for")
}

fn expect(message: Message<'_>, kind: Kind, what: &'static str) -> Result<(), Error> {
    match message.kind == kind {
        true => Ok(()),
        false => Err(unexpected(what)),
    }
}

/// After our hello.
pub(super) struct WaitHello {
    hello: Hello,
    /// The last hello, the whole message.
    message: Vec<u8>,
    /// After a HelloRetryRequest: the transcript so far, and the suite that it named.
    retried: Option<(Transcript, CipherSuite)>,
}

impl WaitHello {
    fn take(
        self,
        message: Message<'_>,
        log: Option<&dyn KeyLog>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Next, Error> {
        let answer = ServerHello::read(message)?;
        if answer.version()? != TLS13 {
            return Err(Error::peer(Alert::ProtocolVersion, "the server speaks no TLS 1.3"));
        }
        if answer.legacy_version != 0x0303 || answer.compression != 0 {
            return Err(malformed("a ServerHello that is not of TLS 1.2 in form"));
        }
        if answer.session_id != self.hello.session_id {
            return Err(malformed("the session id is not the one that was sent"));
        }
        let suite = CipherSuite::from_id(answer.suite).filter(|_| self.hello.suites.contains(&answer.suite));
        let suite = suite.ok_or(illegal("a suite that was not offered"))?;
        match answer.is_retry() {
            true => self.retry(&answer, suite, random),
            false => self.agree(&answer, suite, log),
        }
    }

    fn retry(
        mut self,
        answer: &ServerHello<'_>,
        suite: CipherSuite,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Next, Error> {
        if self.retried.is_some() {
            return Err(unexpected("a second HelloRetryRequest"));
        }
        let known = [extension::SUPPORTED_VERSIONS, extension::KEY_SHARE, extension::COOKIE];
        for (kind, body) in answer.extensions.iter().filter(|(kind, _)| !known.contains(kind)) {
            // The confirmation of an encrypted hello; ours has nothing in it that could be confirmed.
            if kind != extension::ENCRYPTED_CLIENT_HELLO || self.hello.extension(kind).is_none() {
                return Err(unsolicited());
            }
            if body.len() != 8 {
                return Err(malformed("a confirmation of a wrong length"));
            }
        }
        let (group, cookie) = (answer.retry_group()?, answer.extensions.cookie()?);
        let group = match group {
            None if cookie.is_none() => return Err(illegal("a HelloRetryRequest that asks for nothing")),
            None => None,
            Some(id) => {
                let body = self.hello.extension(extension::SUPPORTED_GROUPS).unwrap_or_default();
                let offered = body.chunks_exact(2).skip(1).any(|group| group == id.to_be_bytes());
                let has_share = self.hello.secrets.iter().any(|(group, _)| group.id() == id);
                let group = Group::from_id(id).filter(|_| offered && !has_share);
                Some(group.ok_or(illegal("a HelloRetryRequest for a group that cannot be asked for"))?)
            }
        };
        let mut transcript = Transcript::after_retry(suite.hash(), &self.message);
        transcript.add(answer.bytes);
        self.hello.retry(group, cookie, random)?;
        self.message = self.hello.to_bytes()?;
        let hello = self.message.clone();
        self.retried = Some((transcript, suite));
        Ok(Next::Retry {
            state: State::Hello(Box::new(self)),
            hello,
        })
    }

    fn agree(self, answer: &ServerHello<'_>, suite: CipherSuite, log: Option<&dyn KeyLog>) -> Result<Next, Error> {
        let known = [extension::SUPPORTED_VERSIONS, extension::KEY_SHARE];
        if answer.extensions.iter().any(|(kind, _)| !known.contains(&kind)) {
            return Err(unsolicited());
        }
        let share = answer.key_share()?;
        let share = share.ok_or(Error::peer(
            Alert::MissingExtension,
            "a ServerHello without a key share",
        ))?;
        let secret = self.hello.secrets.iter().find(|(group, _)| group.id() == share.group);
        let (group, secret) = secret.ok_or(illegal("a group that was not offered"))?;
        let shared = secret.agree(*group, share.key)?;
        let mut transcript = match self.retried {
            Some((_, named)) if named != suite => return Err(illegal("another suite than before")),
            Some((transcript, _)) => transcript,
            None => Transcript::new(suite.hash()),
        };
        transcript.add(&self.message);
        transcript.add(answer.bytes);
        let random = self.hello.random;
        let logged: Logged<'_> = log.map(|log| (log, &random));
        let schedule = Handshake::new(suite, &shared, &transcript.value(), logged);
        let secrets = (schedule.secrets.client.keys(), schedule.secrets.server.keys());
        let offered = self.hello.extensions.into_iter();
        let common = Common {
            suite,
            group: *group,
            random,
            transcript,
            schedule,
            client_hello: self.message,
            server_hello: answer.bytes.to_vec(),
            offered: offered.filter(|(kind, _)| *kind != extension::KEY_SHARE).collect(),
            alpn: None,
            settings: false,
        };
        Ok(Next::Sealed {
            state: State::Extensions(Box::new(WaitExtensions { common })),
            secrets,
        })
    }
}

/// What all later states need.
struct Common {
    suite: CipherSuite,
    group: Group,
    random: [u8; 32],
    transcript: Transcript,
    schedule: Handshake,
    client_hello: Vec<u8>,
    server_hello: Vec<u8>,
    /// Extensions of our hello, without its key shares.
    offered: Vec<(u16, Vec<u8>)>,
    alpn: Option<Vec<u8>>,
    /// The server takes part in `application_settings`, so that ours are to be sent.
    settings: bool,
}

impl Common {
    fn offers(&self, kind: u16) -> Option<&[u8]> {
        let mut all = self.offered.iter();
        all.find(|(at, _)| *at == kind).map(|(_, body)| &body[..])
    }

    /// The names in an extension of our hello that is a list of them.
    fn names(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.offers(kind).and_then(|body| body.get(2..)).unwrap_or_default();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(name)
        })
    }

    /// Whether the chosen protocol is one whose settings are exchanged.
    fn has_settings(&self) -> bool {
        let chosen = self.alpn.as_deref();
        self.names(extension::APPLICATION_SETTINGS)
            .any(|name| Some(name) == chosen)
    }

    /// Extensions of an answer may only be those that have a place there and were asked for. One that is made up has none.
    fn only_offered(&self, extensions: &Extensions<'_>, places: &[u16]) -> Result<(), Error> {
        let fits = |kind: u16| places.contains(&kind) && self.offers(kind).is_some();
        match extensions.iter().all(|(kind, _)| fits(kind)) {
            true => Ok(()),
            false => Err(unsolicited()),
        }
    }

    /// Has the body of a Certificate judged. Gives the server's own one.
    fn judged<J: Judge>(&self, body: &[u8], judge: &mut J) -> Result<Vec<u8>, Error> {
        let certificate = Certificate::read(body)?;
        if !certificate.context.is_empty() {
            return Err(malformed("a context of a server's certificate"));
        }
        for entry in &certificate.entries {
            self.only_offered(&entry.extensions, &OF_CERTIFICATES)?;
        }
        let chain: Vec<&[u8]> = certificate.entries.iter().map(|entry| entry.der).collect();
        let none = Error::peer(Alert::CertificateRequired, "a chain without a certificate");
        let first = chain.first().ok_or(none)?.to_vec();
        judge.certificate(&Shown {
            chain: &chain,
            client_hello: &self.client_hello,
            server_hello: &self.server_hello,
        })?;
        Ok(first)
    }
}

/// After ServerHello.
pub(super) struct WaitExtensions {
    common: Common,
}

impl WaitExtensions {
    fn take(mut self, message: Message<'_>) -> Result<Next, Error> {
        expect(
            message,
            Kind::ENCRYPTED_EXTENSIONS,
            "a message where EncryptedExtensions had to come",
        )?;
        let extensions = EncryptedExtensions::read(message.body())?.0;
        const WHERE: &str = "an extension that has no place in EncryptedExtensions";
        for (kind, _) in extensions
            .iter()
            .filter(|(kind, _)| self.common.offers(*kind).is_some())
        {
            match kind {
                extension::RENEGOTIATION_INFO => return Err(illegal(WHERE)),
                kind if MISPLACED.contains(&kind) => return Err(malformed(WHERE)),
                _ => {}
            }
        }
        self.common.only_offered(&extensions, &ENCRYPTED)?;
        if extensions
            .get(extension::SERVER_NAME)
            .is_some_and(|body| !body.is_empty())
        {
            return Err(malformed("a server name in an answer"));
        }
        if let Some(chosen) = extensions.alpn()? {
            let [chosen] = chosen[..] else {
                return Err(malformed("more than one application protocol"));
            };
            if !self.common.names(extension::ALPN).any(|name| name == chosen) {
                return Err(illegal("an application protocol that was not offered"));
            }
            self.common.alpn = Some(chosen.to_vec());
        }
        self.common.settings = extensions.get(extension::APPLICATION_SETTINGS).is_some();
        if self.common.settings && !self.common.has_settings() {
            return Err(illegal("settings of a protocol that has none"));
        }
        self.common.transcript.add(message.bytes);
        Ok(Next::Wait(State::Certificate(Box::new(WaitCertificate {
            common: self.common,
            asked: false,
        }))))
    }
}

/// After EncryptedExtensions.
pub(super) struct WaitCertificate {
    common: Common,
    /// The server asks for a certificate.
    asked: bool,
}

impl WaitCertificate {
    fn take<J: Judge>(mut self, message: Message<'_>, judge: &mut J) -> Result<Next, Error> {
        let shown = match message.kind {
            Kind::CERTIFICATE_REQUEST if !self.asked => {
                // A context it has only after the handshake.
                if message.body().first() != Some(&0) {
                    return Err(malformed("a context of a CertificateRequest"));
                }
                self.asked = true;
                self.common.transcript.add(message.bytes);
                return Ok(Next::Wait(State::Certificate(Box::new(self))));
            }
            Kind::COMPRESSED_CERTIFICATE if self.common.offers(extension::COMPRESS_CERTIFICATE).is_some() => {
                let body = CompressedCertificate::read(message.body())?.decompress()?;
                self.common.judged(&body, judge)?
            }
            Kind::CERTIFICATE => self.common.judged(message.body(), judge)?,
            _ => return Err(unexpected("a message where Certificate had to come")),
        };
        self.common.transcript.add(message.bytes);
        Ok(Next::Wait(State::Verify(Box::new(WaitVerify {
            common: self.common,
            asked: self.asked,
            shown,
        }))))
    }
}

/// After Certificate.
pub(super) struct WaitVerify {
    common: Common,
    asked: bool,
    /// The server's own certificate.
    shown: Vec<u8>,
}

impl WaitVerify {
    fn take<J: Judge>(mut self, message: Message<'_>, judge: &mut J) -> Result<Next, Error> {
        expect(
            message,
            Kind::CERTIFICATE_VERIFY,
            "a message where CertificateVerify had to come",
        )?;
        let verify = CertificateVerify::read(message.body())?;
        let schemes = self.common.offers(extension::SIGNATURE_ALGORITHMS).unwrap_or_default();
        let mut schemes = schemes.chunks_exact(2).skip(1);
        let offered = schemes.any(|scheme| scheme == verify.scheme.to_be_bytes());
        // A scheme that is made up stands in the list, too, but nobody signs with it.
        let offered = offered && !OF_CHAINS.contains(&verify.scheme) && !is_made_up(verify.scheme);
        if !offered && !judge.takes(verify.scheme) {
            return Err(illegal("a signature scheme that was not offered"));
        }
        let signed = codec::signed_by_server(self.common.transcript.value().as_ref());
        judge.signature(&self.shown, verify.scheme, &signed, verify.signature)?;
        self.common.transcript.add(message.bytes);
        Ok(Next::Wait(State::Finished(Box::new(WaitFinished {
            common: self.common,
            asked: self.asked,
        }))))
    }
}

/// After CertificateVerify.
pub(super) struct WaitFinished {
    common: Common,
    asked: bool,
}

impl WaitFinished {
    fn take(self, message: Message<'_>, log: Option<&dyn KeyLog>) -> Result<Next, Error> {
        expect(message, Kind::FINISHED, "a message where Finished had to come")?;
        let Common {
            suite,
            group,
            random,
            mut transcript,
            schedule,
            alpn,
            settings,
            ..
        } = self.common;
        schedule
            .secrets
            .server
            .check_finished(&transcript.value(), message.body())?;
        transcript.add(message.bytes);
        let logged: Logged<'_> = log.map(|log| (log, &random));
        let secrets = schedule.application(&transcript.value(), logged);
        let mut flight = Vec::new();
        if settings {
            // Settings of our own there are none.
            write_encrypted_extensions(&mut flight, &[(extension::APPLICATION_SETTINGS, &[])])?;
        }
        if self.asked {
            write_certificate::<[u8; 0]>(&mut flight, &[])?;
        }
        transcript.add(&flight);
        let finished = schedule.secrets.client.finished(&transcript.value());
        write_finished(&mut flight, finished.as_ref())?;
        Ok(Next::Done {
            flight,
            done: Done {
                secrets,
                suite,
                group,
                alpn,
            },
        })
    }
}
