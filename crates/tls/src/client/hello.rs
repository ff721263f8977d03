//! The hello of a client, and the secrets behind it.

use crate::codec::extension::{self, body};
use crate::codec::{SESSION_ID_AT, write_client_hello};
use crate::error::Error;
use crate::group::{ClientSecret, Group, X25519Secret};
use crate::suite::CipherSuite;

/// Signature schemes of a plain hello: ECDSA, Ed25519, RSA-PSS; and RSA with PKCS #1, of which the standard allows no use but in
/// certificates.
const SCHEMES: [u16; 9] = [0x0403, 0x0503, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601];

/// What a plain hello offers.
#[derive(Clone, Debug)]
pub struct Offer<'a> {
    /// The name to ask for. `None`: none, as it has to be for an address.
    pub server_name: Option<&'a str>,
    /// Application protocols, the one it likes best first. Empty: the extension is left out.
    pub alpn: &'a [&'a str],
    /// Suites, the one it likes best first.
    pub suites: &'a [CipherSuite],
    /// Groups, the one it likes best first.
    pub groups: &'a [Group],
    /// For how many of the groups a key share is sent. The server asks for those of others.
    pub shares: usize,
}

impl Default for Offer<'_> {
    fn default() -> Self {
        Offer {
            server_name: None,
            alpn: &[],
            suites: &CipherSuite::ALL,
            groups: &Group::ALL,
            shares: Group::SHARED.len(),
        }
    }
}

/// A ClientHello that has not been sent, field by field, and the secrets of its key shares, which are wiped when it is dropped.
pub struct Hello {
    pub(crate) random: [u8; 32],
    pub(crate) session_id: Vec<u8>,
    pub(crate) suites: Vec<u16>,
    pub(crate) extensions: Vec<(u16, Vec<u8>)>,
    pub(crate) secrets: Vec<(Group, ClientSecret)>,
    /// Where among the extensions a cookie goes that the server may ask for.
    pub(crate) cookie_at: usize,
}

impl Hello {
    /// A hello that says what is offered and nothing else. Its random and its session id are drawn, then the secrets.
    ///
    /// # Errors
    /// [`Error::Given`] for names that are longer than fits.
    pub fn plain(offer: &Offer<'_>, random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        let (mut own, mut session_id) = ([0; 32], vec![0; 32]);
        random(&mut own);
        random(&mut session_id);
        let secrets = offer.groups.iter().take(offer.shares);
        let secrets: Vec<(Group, ClientSecret)> = secrets
            .map(|group| (*group, ClientSecret::of(*group, &mut *random)))
            .collect();
        let groups: Vec<u16> = offer.groups.iter().map(|group| group.id()).collect();
        let mut extensions = Vec::new();
        if let Some(name) = offer.server_name {
            extensions.push((extension::SERVER_NAME, body::server_name(name.as_bytes())?));
        }
        if !offer.alpn.is_empty() {
            extensions.push((extension::ALPN, body::names(offer.alpn)?));
        }
        extensions.extend([
            (extension::SUPPORTED_VERSIONS, body::numbers(1, &[extension::TLS13])?),
            (extension::SUPPORTED_GROUPS, body::numbers(2, &groups)?),
            (extension::SIGNATURE_ALGORITHMS, body::numbers(2, &SCHEMES)?),
            (extension::KEY_SHARE, key_share(None, &secrets)?),
        ]);
        Ok(Hello {
            random: own,
            session_id,
            cookie_at: extensions.len(),
            suites: offer.suites.iter().map(|suite| suite.id()).collect(),
            extensions,
            secrets,
        })
    }

    /// The whole message, as it is sent.
    ///
    /// # Errors
    /// [`Error::Given`] for a field that is longer than fits.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let extensions: Vec<(u16, &[u8])> = self.extensions.iter().map(|(kind, body)| (*kind, &body[..])).collect();
        write_client_hello(&mut out, &self.random, &self.session_id, &self.suites, &extensions)?;
        Ok(out)
    }

    /// The random bytes.
    pub fn random(&self) -> &[u8; 32] {
        &self.random
    }

    /// Makes the session id of the message: `seal` gets the whole message with 32 zeros in its place, and writes them over.
    ///
    /// # Errors
    /// Those of `seal`, and those of [`Hello::to_bytes`].
    pub fn seal_session_id(&mut self, seal: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.session_id = vec![0; 32];
        let mut message = self.to_bytes()?;
        seal(&mut message)?;
        self.session_id
            .copy_from_slice(&message[SESSION_ID_AT..SESSION_ID_AT + 32]);
        Ok(())
    }

    /// The secret of the share of X25519, or else of that part of a hybrid one. `None`: no share has one.
    pub fn x25519(&self) -> Option<&X25519Secret> {
        let of = |wanted: Group| self.secrets.iter().find(|(group, _)| *group == wanted);
        of(Group::X25519).or(of(Group::X25519MlKem768))?.1.x25519()
    }

    pub(super) fn extension(&self, kind: u16) -> Option<&[u8]> {
        let mut all = self.extensions.iter();
        all.find(|(at, _)| *at == kind).map(|(_, body)| &body[..])
    }

    /// Answers a HelloRetryRequest: the one share of the group that is asked for, and the cookie.
    pub(super) fn retry(
        &mut self,
        group: Option<Group>,
        cookie: Option<&[u8]>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Error> {
        if let Some(group) = group {
            self.secrets = vec![(group, ClientSecret::of(group, random))];
            let share = key_share(None, &self.secrets)?;
            let place = self
                .extensions
                .iter_mut()
                .find(|(kind, _)| *kind == extension::KEY_SHARE);
            place.ok_or(Error::Given("a hello without key shares"))?.1 = share;
        }
        if let Some(cookie) = cookie {
            let at = self.cookie_at.min(self.extensions.len());
            self.extensions.insert(at, (extension::COOKIE, body::cookie(cookie)?));
        }
        Ok(())
    }
}

/// The body of `key_share`, behind a share of a made-up group, if there is to be one.
pub(crate) fn key_share(first: Option<u16>, secrets: &[(Group, ClientSecret)]) -> Result<Vec<u8>, Error> {
    let mut all: Vec<(u16, Vec<u8>)> = first.map(|group| (group, vec![0])).into_iter().collect();
    for (group, secret) in secrets {
        all.push((group.id(), secret.share(*group)?));
    }
    body::key_shares(&all)
}
