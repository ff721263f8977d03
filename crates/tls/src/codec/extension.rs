//! Extensions: the list as it stands in a message, and what those that matter here say (RFC 8446 section 4.2).

use std::ops::Range;

use super::MAX_EXTENSIONS;
use super::fields::{self, Fields};
use super::message::too_long;
use crate::Error;

/// `server_name` (RFC 6066 section 3)
pub const SERVER_NAME: u16 = 0;
/// `status_request` (RFC 6066 section 8)
pub const STATUS_REQUEST: u16 = 5;
/// `supported_groups`
pub const SUPPORTED_GROUPS: u16 = 10;
/// `ec_point_formats` (RFC 8422), of which TLS 1.3 takes no notice
pub const EC_POINT_FORMATS: u16 = 11;
/// `signature_algorithms`
pub const SIGNATURE_ALGORITHMS: u16 = 13;
/// `application_layer_protocol_negotiation` (RFC 7301)
pub const ALPN: u16 = 16;
/// `signed_certificate_timestamp` (RFC 6962)
pub const SIGNED_CERTIFICATE_TIMESTAMP: u16 = 18;
/// `padding` (RFC 7685)
pub const PADDING: u16 = 21;
/// `extended_main_secret` (RFC 7627), of TLS 1.2
pub const EXTENDED_MAIN_SECRET: u16 = 23;
/// `compress_certificate` (RFC 8879)
pub const COMPRESS_CERTIFICATE: u16 = 27;
/// `session_ticket` (RFC 5077), of TLS 1.2
pub const SESSION_TICKET: u16 = 35;
/// `pre_shared_key`
pub const PRE_SHARED_KEY: u16 = 41;
/// `supported_versions`
pub const SUPPORTED_VERSIONS: u16 = 43;
/// `cookie`
pub const COOKIE: u16 = 44;
/// `psk_key_exchange_modes`
pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
/// `key_share`
pub const KEY_SHARE: u16 = 51;
/// `application_settings` (draft-vvv-tls-alps), in the number that is in use since 2024
pub const APPLICATION_SETTINGS: u16 = 0x44cd;
/// `trust_anchors` (draft-ietf-tls-trust-anchor-ids)
pub const TRUST_ANCHORS: u16 = 0xca34;
/// `encrypted_client_hello` (draft-ietf-tls-esni)
pub const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// `renegotiation_info` (RFC 5746), of TLS 1.2
pub const RENEGOTIATION_INFO: u16 = 0xff01;

/// TLS 1.3, as `supported_versions` has it.
pub const TLS13: u16 = 0x0304;

/// A list of extensions in which every length fits and none comes twice.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Extensions<'a>(&'a [u8]);

impl<'a> Extensions<'a> {
    /// Reads what stands behind the length of a list.
    ///
    /// # Errors
    /// [`Error::Peer`] for a length that does not fit, an extension that comes twice, or more than [`MAX_EXTENSIONS`].
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(bytes, "a list of extensions");
        let (mut seen, mut count) = ([0_u16; MAX_EXTENSIONS], 0);
        while !fields.is_empty() {
            let kind = fields.u16()?;
            fields.vector(2)?;
            if seen[..count].contains(&kind) {
                return Err(fields::illegal("an extension that comes twice"));
            }
            *seen.get_mut(count).ok_or(too_long("a list of extensions"))? = kind;
            count += 1;
        }
        Ok(Extensions(bytes))
    }

    /// Each with its number, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let [a, b, c, d, tail @ ..] = rest else { return None };
            let (body, after) = tail.split_at_checked(usize::from(u16::from_be_bytes([*c, *d])))?;
            rest = after;
            Some((u16::from_be_bytes([*a, *b]), body))
        })
    }

    /// The body of the one with this number.
    pub fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|(at, _)| *at == kind).map(|(_, body)| body)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The list as it came, without its length.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A list of numbers of two bytes: versions, groups, suites, signature schemes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Numbers<'a>(&'a [[u8; 2]]);

impl<'a> Numbers<'a> {
    pub(super) fn read(bytes: &'a [u8], what: &'static str) -> Result<Self, Error> {
        let (numbers, rest) = bytes.as_chunks();
        if numbers.is_empty() || !rest.is_empty() {
            return Err(Fields::new(bytes, what).malformed());
        }
        Ok(Numbers(numbers))
    }

    /// Each of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.0.iter().map(|number| u16::from_be_bytes(*number))
    }

    /// Whether this one is there.
    pub fn contains(&self, number: u16) -> bool {
        self.iter().any(|one| one == number)
    }
}

/// One key share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyShare<'a> {
    /// Number of its group.
    pub group: u16,
    /// The key, or what answers one.
    pub key: &'a [u8],
}

/// The key shares of a ClientHello: every length fits, and no group comes twice.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct KeyShares<'a>(&'a [u8]);

impl<'a> KeyShares<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        // The same shape as a list of extensions: a number, and a vector behind two bytes of length.
        let list = Extensions::read(bytes)?;
        match list.iter().any(|(_, key)| key.is_empty()) {
            true => Err(Fields::new(bytes, "a key share without a key").malformed()),
            false => Ok(KeyShares(bytes)),
        }
    }

    /// Each of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = KeyShare<'a>> + use<'a> {
        Extensions(self.0).iter().map(|(group, key)| KeyShare { group, key })
    }

    /// The key for this group.
    pub fn get(&self, group: u16) -> Option<&'a [u8]> {
        Extensions(self.0).get(group)
    }
}

fn list<'a>(body: &'a [u8], width: usize, what: &'static str) -> Result<&'a [u8], Error> {
    let mut fields = Fields::new(body, what);
    let list = fields.vector(width)?;
    fields.end()?;
    Ok(list)
}

/// What the extensions of a ClientHello say. `None` throughout: the extension is not there.
impl<'a> Extensions<'a> {
    /// Versions of a client, the one it likes best first.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn supported_versions(&self) -> Result<Option<Numbers<'a>>, Error> {
        const WHAT: &str = "supported_versions";
        let body = self.get(SUPPORTED_VERSIONS);
        body.map(|body| Numbers::read(list(body, 1, WHAT)?, WHAT)).transpose()
    }

    /// Groups of a client, in its order.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn supported_groups(&self) -> Result<Option<Numbers<'a>>, Error> {
        const WHAT: &str = "supported_groups";
        let body = self.get(SUPPORTED_GROUPS);
        body.map(|body| Numbers::read(list(body, 2, WHAT)?, WHAT)).transpose()
    }

    /// Signature schemes of a client, or of one that asks for certificates.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn signature_algorithms(&self) -> Result<Option<Numbers<'a>>, Error> {
        const WHAT: &str = "signature_algorithms";
        let body = self.get(SIGNATURE_ALGORITHMS);
        body.map(|body| Numbers::read(list(body, 2, WHAT)?, WHAT)).transpose()
    }

    /// Key shares of a client, in its order. There may be none in the list: the client then asks to be told a group.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn key_shares(&self) -> Result<Option<KeyShares<'a>>, Error> {
        let body = self.get(KEY_SHARE);
        body.map(|body| KeyShares::read(list(body, 2, "key_share")?))
            .transpose()
    }

    /// The host name that a client asks for, as bytes: the first of the kind `host_name`, which is not empty.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn server_name(&self) -> Result<Option<&'a [u8]>, Error> {
        const WHAT: &str = "server_name";
        let Some(body) = self.get(SERVER_NAME) else {
            return Ok(None);
        };
        let mut names = Fields::new(list(body, 2, WHAT)?, WHAT);
        let mut found = None;
        while !names.is_empty() {
            let kind = names.u8()?;
            let name = names.vector(2)?;
            if kind == 0 && found.is_none() {
                found = Some(name);
            }
        }
        match found {
            Some([]) | None => Err(names.malformed()),
            found => Ok(found),
        }
    }

    /// Application protocols, in their order: what a client offers, or, exactly one, what a server chose.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed: no name, or an empty one.
    pub fn alpn(&self) -> Result<Option<Vec<&'a [u8]>>, Error> {
        const WHAT: &str = "application_layer_protocol_negotiation";
        let Some(body) = self.get(ALPN) else {
            return Ok(None);
        };
        let mut names = Fields::new(list(body, 2, WHAT)?, WHAT);
        let mut found = Vec::new();
        while !names.is_empty() {
            match names.vector(1)? {
                [] => return Err(names.malformed()),
                name => found.push(name),
            }
        }
        match found.is_empty() {
            true => Err(names.malformed()),
            false => Ok(Some(found)),
        }
    }

    /// The cookie of a HelloRetryRequest, or of the hello that answers one.
    ///
    /// # Errors
    /// [`Error::Peer`] for a body that is malformed.
    pub fn cookie(&self) -> Result<Option<&'a [u8]>, Error> {
        let Some(body) = self.get(COOKIE) else {
            return Ok(None);
        };
        match list(body, 2, "cookie")? {
            [] => Err(Fields::new(body, "cookie").malformed()),
            cookie => Ok(Some(cookie)),
        }
    }
}

/// Reads the body of `key_share` in a ServerHello, and where in it the key stands.
pub(super) fn server_share(body: &[u8]) -> Result<(KeyShare<'_>, Range<usize>), Error> {
    let mut fields = Fields::new(body, "key_share");
    let group = fields.u16()?;
    let key = fields.vector(2)?;
    fields.end()?;
    Ok((KeyShare { group, key }, 4..body.len()))
}

/// Reads a body that is one number.
pub(super) fn number(body: &[u8], what: &'static str) -> Result<u16, Error> {
    let mut fields = Fields::new(body, what);
    let number = fields.u16()?;
    fields.end()?;
    Ok(number)
}

/// Writes extensions with their length, each as number and body.
pub(super) fn write(out: &mut Vec<u8>, extensions: &[(u16, &[u8])]) -> Result<(), Error> {
    fields::vector(out, 2, |out| {
        for (kind, body) in extensions {
            out.extend_from_slice(&kind.to_be_bytes());
            fields::bytes(out, 2, body)?;
        }
        Ok(())
    })
}

/// Bodies of extensions as they are written.
pub mod body {
    use crate::Error;
    use crate::codec::fields;

    /// Of `server_name`, for one host.
    ///
    /// # Errors
    /// [`Error::Given`] if the name is longer than fits.
    pub fn server_name(name: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(name.len() + 5);
        fields::vector(&mut out, 2, |out| {
            out.push(0);
            fields::bytes(out, 2, name)
        })?;
        Ok(out)
    }

    /// Of `application_layer_protocol_negotiation`, and of what else is such a list of names.
    ///
    /// # Errors
    /// [`Error::Given`] if a name or all together are longer than fits.
    pub fn names<N: AsRef<[u8]>>(names: &[N]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        fields::vector(&mut out, 2, |out| {
            names.iter().try_for_each(|name| fields::bytes(out, 1, name.as_ref()))
        })?;
        Ok(out)
    }

    /// Of `supported_groups` and `signature_algorithms` (`width` 2), and of `supported_versions` in a ClientHello (`width` 1).
    ///
    /// # Errors
    /// [`Error::Given`] if there are more than fit.
    pub fn numbers(width: usize, numbers: &[u16]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(width + 2 * numbers.len());
        fields::vector(&mut out, width, |out| {
            out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
            Ok(())
        })?;
        Ok(out)
    }

    /// Of `key_share` in a ClientHello: each with the number of its group.
    ///
    /// # Errors
    /// [`Error::Given`] if they are longer than fits.
    pub fn key_shares<K: AsRef<[u8]>>(shares: &[(u16, K)]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        fields::vector(&mut out, 2, |out| {
            shares.iter().try_for_each(|(group, key)| {
                out.extend_from_slice(&group.to_be_bytes());
                fields::bytes(out, 2, key.as_ref())
            })
        })?;
        Ok(out)
    }

    /// Of `key_share` in a ServerHello.
    ///
    /// # Errors
    /// [`Error::Given`] if the key is longer than fits.
    pub fn key_share(group: u16, key: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = group.to_be_bytes().to_vec();
        fields::bytes(&mut out, 2, key)?;
        Ok(out)
    }

    /// Of `cookie`.
    ///
    /// # Errors
    /// [`Error::Given`] if it is longer than fits.
    pub fn cookie(cookie: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(cookie.len() + 2);
        fields::bytes(&mut out, 2, cookie)?;
        Ok(out)
    }
}
