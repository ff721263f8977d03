//! Who a client's program is, without saying it: the id by which an association of datagrams is found again.

use std::fmt;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// The id of an association, whatever carrier it comes in.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct GlobalId([u8; GlobalId::LEN]);

impl GlobalId {
    /// Bytes of an id.
    pub const LEN: usize = 8;

    /// The id of a program by the address it sends from: a keyed BLAKE3 hash of `udp:1.2.3.4:5678`.
    pub fn new(key: &BaseKey, source: SocketAddr) -> GlobalId {
        let source = SocketAddr::new(source.ip().to_canonical(), source.port());
        let mut id = [0; GlobalId::LEN];
        let mut hash = blake3::Hasher::new_keyed(&key.0);
        hash.update(format!("udp:{source}").as_bytes());
        hash.finalize_xof().fill(&mut id);
        GlobalId(id)
    }

    /// What a frame holds. Zeros mean that there is none.
    pub(super) fn from_wire(bytes: [u8; GlobalId::LEN]) -> Option<GlobalId> {
        (bytes != [0; GlobalId::LEN]).then_some(GlobalId(bytes))
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; GlobalId::LEN] {
        self.0
    }
}

/// The key that ids are made with. It keeps a server from learning addresses.
#[derive(Clone)]
pub struct BaseKey([u8; 32]);

impl BaseKey {
    /// A key of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> BaseKey {
        BaseKey(bytes)
    }

    /// Reads a key as `XRAY_XUDP_BASEKEY` has it: base64 of 32 bytes, of the kind for URLs, without padding.
    pub fn parse(text: &str) -> Option<BaseKey> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let key = <[u8; 32]>::try_from(bytes.as_slice()).ok().map(BaseKey);
        bytes.zeroize();
        key
    }
}

impl PartialEq for BaseKey {
    fn eq(&self, other: &BaseKey) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Drop for BaseKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for BaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BaseKey(…)")
    }
}
