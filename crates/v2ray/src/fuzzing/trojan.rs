//! Trojan: requests and packets.

use super::whole;
use crate::{Step, trojan};

pub(super) fn trojan_packet(data: &[u8]) {
    whole(data, trojan::packet::decode);
    if let Ok(Step::Done {
        value: (peer, payload), ..
    }) = trojan::packet::decode(data)
    {
        let mut again = Vec::new();
        if trojan::packet::write_head(&peer, payload.len(), &mut again).is_err() {
            assert!(payload.len() > trojan::packet::MAX_WRITE);
            return;
        }
        let start = again.len();
        again.extend_from_slice(&data[payload]);
        let used = again.len();
        let value = (peer, start..used);
        assert_eq!(trojan::packet::decode(&again), Ok(Step::Done { value, used }));
    }
}

pub(super) fn trojan_request(data: &[u8]) {
    whole(data, trojan::Request::decode);
    if let Ok(Step::Done { value, .. }) = trojan::Request::decode(data) {
        let mut users = trojan::Users::new();
        assert!(users.insert(value.key.clone(), ()).is_ok());
        assert_eq!(trojan::first::inspect(data, &users), trojan::first::First::User(&()));
        let mut again = Vec::new();
        value.encode(&mut again);
        let used = again.len();
        assert_eq!(trojan::Request::decode(&again), Ok(Step::Done { value, used }));
    }
}
