//! packetaddr: datagrams with their peers.

use super::whole;
use crate::packet_addr as packets;

pub(super) fn packet_addr(data: &[u8]) {
    whole(data, packets::decode_stream);
    if let Ok((peer, at)) = packets::decode(data) {
        let mut out = Vec::new();
        packets::push_head(&mut out, peer);
        out.extend_from_slice(&data[at..]);
        assert_eq!(
            packets::decode(&out).map(|(again, at)| (again, out[at..].to_vec())),
            Ok((peer, data[at..].to_vec()))
        );
    }
}
