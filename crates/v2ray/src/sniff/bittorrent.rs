//! BitTorrent: its handshake (BEP 3), uTP (BEP 29) and DHT (BEP 5).

use super::{Kind, Look};

/// What a connection begins with.
const HANDSHAKE: &[u8; 20] = b"\x13BitTorrent protocol";

/// Type 4, which opens a connection, of version 1.
const UTP_SYN: u8 = 0x41;
/// Bytes of a uTP header without extensions.
const UTP_HEADER: usize = 20;

pub(super) fn stream(bytes: &[u8]) -> Look {
    let len = bytes.len().min(HANDSHAKE.len());
    if bytes[..len] != HANDSHAKE[..len] {
        Look::Nothing
    } else if len < HANDSHAKE.len() {
        Look::More(HANDSHAKE.len() - len)
    } else {
        Look::found(Kind::Bittorrent, None)
    }
}

pub(super) fn datagram(bytes: &[u8]) -> bool {
    is_utp_syn(bytes) || is_dht(bytes)
}

/// The first packet of a uTP connection: a header and its extensions, and nothing behind them.
fn is_utp_syn(bytes: &[u8]) -> bool {
    let Some((header, mut rest)) = bytes.split_at_checked(UTP_HEADER) else {
        return false;
    };
    let mut extension = header[1];
    while extension != 0 {
        let [next, len, data @ ..] = rest else { return false };
        let Some(after) = data.get(usize::from(*len)..) else {
            return false;
        };
        (extension, rest) = (*next, after);
    }
    header[0] == UTP_SYN && rest.is_empty()
}

/// A message of the DHT: a dictionary in bencoding with its keys in order, of which `y`, the last, says what it is.
fn is_dht(bytes: &[u8]) -> bool {
    const BEGINS: [&[u8]; 4] = [b"d1:ad", b"d1:rd", b"d1:el", b"d2:ip"];
    const ENDS: [&[u8]; 3] = [b"1:y1:qe", b"1:y1:re", b"1:y1:ee"];
    BEGINS.iter().any(|begin| bytes.starts_with(begin)) && ENDS.iter().any(|end| bytes.ends_with(end))
}
