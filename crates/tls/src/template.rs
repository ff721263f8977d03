//! Hellos that look like those of a browser.
//!
//! One is imitated, field by field: [`chrome`], as Chromium 156 on a desktop with AES in hardware sends it. It is longer than 511 bytes,
//! so that it has no padding: that is for hellos of 256 to 511 bytes.

use crate::client::{Hello, key_share};
use crate::codec::extension::{self, TLS13, body};
use crate::error::Error;
use crate::group::{ClientSecret, Group, X25519Secret};

/// Suites, behind one that is made up: those of TLS 1.3, then those of TLS 1.2.
const SUITES: [u16; 15] = [
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f,
    0x0035,
];
/// Groups, behind one that is made up.
const GROUPS: [u16; 4] = [0x11ec, 0x001d, 0x0017, 0x0018];
/// Signature schemes, behind one that is made up: ML-DSA, ECDSA, RSA.
const SCHEMES: [u16; 11] = [
    0x0904, 0x0905, 0x0906, 0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601,
];
/// Compression of certificates: brotli.
const COMPRESSIONS: [u8; 3] = [2, 0, 2];
/// Application protocols, unless there are to be none.
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];
/// The protocols whose settings are exchanged.
const SETTINGS: [&str; 1] = ["h2"];

/// Trust anchors: three sets of the browser's own store, each by a prefix and the numbers in it.
const ANCHORS: [(&[u8], &[&[u8]]); 3] = [
    (
        &[0x82, 0xdf, 0x13, 0x02],
        &[&[1], &[6], &[13], &[14], &[15], &[18], &[19], &[20]],
    ),
    (
        &[0x83, 0x9a, 0x64, 0x8c, 0x9b, 0x2d, 0x01],
        &[&[7], &[8], &[9], &[10], &[11], &[12], &[13], &[18], &[19]],
    ),
    (
        &[0xd6, 0x79, 0x09],
        &[&[1], &[4], &[5], &[6], &[7], &[8], &[10], &[11], &[12], &[13], &[15]],
    ),
];

/// Where made-up numbers stand (RFC 8701). Each place has one of its own.
#[derive(Clone, Copy)]
enum Place {
    Suite,
    Group,
    First,
    Last,
    Version,
    Scheme,
}

/// Made-up numbers, which servers are to pass over: 0x?a?a.
struct MadeUp([u8; 6]);

impl MadeUp {
    fn new(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut seeds = [0; 6];
        random(&mut seeds);
        MadeUp(seeds)
    }

    fn of(&self, place: Place) -> u16 {
        let byte = |place: Place| u16::from(self.0[place as usize] & 0xf0 | 0x0a) * 0x0101;
        match place {
            // No extension comes twice.
            Place::Last if byte(Place::Last) == byte(Place::First) => byte(Place::Last) ^ 0x1010,
            place => byte(place),
        }
    }
}

/// The hello of a recent Chrome: made-up numbers, the hybrid group first, extensions in an order that is drawn for each.
///
/// `server_name` is left out for an address, as the browser does. Without `protocols` neither application protocols nor settings
/// are offered. Every random choice, every key included, is drawn from `random`.
///
/// # Errors
/// [`Error::Given`] for a name that is longer than fits.
pub fn chrome(server_name: Option<&str>, protocols: bool, random: &mut dyn FnMut(&mut [u8])) -> Result<Hello, Error> {
    let (mut own, mut session_id) = ([0; 32], vec![0; 32]);
    random(&mut own);
    random(&mut session_id);
    let made_up = MadeUp::new(random);
    let with = |place: Place, numbers: &[u16]| [&[made_up.of(place)], numbers].concat();
    // The browser makes a key for each share.
    let secrets = Group::SHARED.map(|group| (group, ClientSecret::of(group, &mut *random)));
    let secrets = Vec::from(secrets);

    let mut extensions = vec![
        (extension::EXTENDED_MAIN_SECRET, Vec::new()),
        (extension::RENEGOTIATION_INFO, vec![0]),
        (
            extension::SUPPORTED_GROUPS,
            body::numbers(2, &with(Place::Group, &GROUPS))?,
        ),
        (extension::EC_POINT_FORMATS, vec![1, 0]),
        (extension::SESSION_TICKET, Vec::new()),
        (extension::STATUS_REQUEST, vec![1, 0, 0, 0, 0]),
        (
            extension::SIGNATURE_ALGORITHMS,
            body::numbers(2, &with(Place::Scheme, &SCHEMES))?,
        ),
        (extension::SIGNED_CERTIFICATE_TIMESTAMP, Vec::new()),
        (
            extension::KEY_SHARE,
            key_share(Some(made_up.of(Place::Group)), &secrets)?,
        ),
        (extension::PSK_KEY_EXCHANGE_MODES, vec![1, 1]),
        (
            extension::SUPPORTED_VERSIONS,
            body::numbers(1, &with(Place::Version, &[TLS13, 0x0303]))?,
        ),
        (extension::COMPRESS_CERTIFICATE, COMPRESSIONS.to_vec()),
        (extension::ENCRYPTED_CLIENT_HELLO, encrypted_hello(random)),
        (extension::TRUST_ANCHORS, trust_anchors()?),
    ];
    if let Some(name) = server_name {
        extensions.push((extension::SERVER_NAME, body::server_name(name.as_bytes())?));
    }
    if protocols {
        extensions.push((extension::ALPN, body::names(&PROTOCOLS)?));
        extensions.push((extension::APPLICATION_SETTINGS, body::names(&SETTINGS)?));
    }
    shuffle(&mut extensions, random);
    // A cookie has its place in the same order; behind the first that is made up, and before the last.
    let cookie_at = 1 + below(extensions.len() as u64 + 1, random) as usize;
    extensions.insert(0, (made_up.of(Place::First), Vec::new()));
    extensions.push((made_up.of(Place::Last), vec![0]));
    Ok(Hello {
        random: own,
        session_id,
        suites: with(Place::Suite, &SUITES),
        extensions,
        secrets,
        cookie_at,
    })
}

/// Draws a number below `end`. What dividing leaves over is next to nothing of 64 bits.
fn below(end: u64, random: &mut dyn FnMut(&mut [u8])) -> u64 {
    let mut drawn = [0; 8];
    random(&mut drawn);
    u64::from_be_bytes(drawn) % end
}

/// Draws an order, each as likely as any other.
fn shuffle<T>(list: &mut [T], random: &mut dyn FnMut(&mut [u8])) {
    for last in (1..list.len()).rev() {
        list.swap(last, below(last as u64 + 1, random) as usize);
    }
}

/// `encrypted_client_hello` with nothing in it, as it is sent to servers of which no key is known: a suite, a number, a key that is
/// one of X25519, and as many bytes as a hello might have.
fn encrypted_hello(random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
    let (mut drawn, mut seed) = ([0; 2], [0; 32]);
    random(&mut drawn);
    random(&mut seed);
    let [number, length] = drawn;
    // A multiple of 32 between 128 and 224, and a tag.
    let length = 128 + 32 * usize::from(length % 4) + 16;
    let mut out = vec![0, 0, 1, 0, 1, number, 0, 32];
    out.extend_from_slice(&X25519Secret::new(&seed).public());
    out.extend_from_slice(&[0, length as u8]);
    let at = out.len();
    out.resize(at + length, 0);
    random(&mut out[at..]);
    out
}

/// `trust_anchors`: the certificates that the browser knows, by their numbers.
fn trust_anchors() -> Result<Vec<u8>, Error> {
    let all = ANCHORS
        .iter()
        .flat_map(|(prefix, numbers)| numbers.iter().map(move |number| [prefix, *number].concat()));
    body::names(&all.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
