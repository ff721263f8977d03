//! What first bytes say.

use crate::sniff::quic_for_fuzzing::{crypto, seal};
use crate::sniff::{Kind, Look, MAX_HELD, Quic, attributes, datagram, is_quic, server_name, stream};

pub(super) fn sniff_stream(data: &[u8]) {
    let found = stream(data, false);
    if let Look::Found(_) = found {
        // The shortest beginning that says it, which what follows does not change.
        let used = (1..=data.len()).find(|&end| stream(&data[..end], false) == found);
        let used = used.unwrap_or(data.len());
        for end in (0..used).step_by(1 + used / 64) {
            match stream(&data[..end], false) {
                Look::More(more) => assert!(more > 0 && end + more <= used, "{more} more than {end} of {used}"),
                other => panic!("{end} of {used} bytes gave {other:?}"),
            }
        }
        assert_eq!(stream(data, true), found, "the end made a difference");
    }
    if let Look::Found(found) = stream(data, true)
        && let Some(domain) = found.domain
    {
        assert_eq!(domain.as_str(), domain.as_str().to_ascii_lowercase());
        match found.kind {
            // Of a line that only lenient servers take nothing is told.
            Kind::Http => {
                let found = attributes(data);
                assert!(found.is_empty() || found.contains_key("host"));
            }
            _ => assert_eq!(server_name(data), Some(domain)),
        }
    }
    datagram(data);
    attributes(data);
}

/// The first byte says whether datagrams come as they are or frames are to be sealed; each piece has its length in front.
pub(super) fn sniff_quic(data: &[u8]) {
    let Some((how, mut rest)) = data.split_first() else {
        return;
    };
    let (mut flow, mut datagrams) = (Quic::default(), Vec::new());
    while let [high, low, more @ ..] = rest {
        let (piece, after) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(more.len()));
        rest = after;
        datagrams.push(match how % 8 {
            version @ 0..3 => seal(usize::from(version), b"12345678", datagrams.len() as u32, piece, 4),
            version @ 3..6 => {
                let frame = crypto(usize::from(how / 8) * datagrams.len(), piece);
                seal(usize::from(version), b"12345678", 0, &frame, 4)
            }
            _ => piece.to_vec(),
        });
    }
    let mut first = None;
    for datagram in datagrams.iter().take(MAX_HELD + 1) {
        is_quic(datagram);
        let found = flow.look(datagram);
        if let Look::Found(found) = &found {
            assert_eq!(found.kind, Kind::Quic);
        }
        first.get_or_insert(found);
    }
    // It is the same every time.
    if let Some(datagram) = datagrams.first() {
        assert_eq!(first, Some(Quic::default().look(datagram)));
    }
}
