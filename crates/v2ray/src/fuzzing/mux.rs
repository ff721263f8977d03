//! Mux.Cool: frames.

use super::whole;
use crate::{Network, Step, mux};

pub(super) fn mux_frames(data: &[u8]) {
    whole(data, mux::decode);
    // All frames that follow each other, each written again: what comes back says the same, without padding.
    let mut rest = data;
    while let Ok(Step::Done { value, used }) = mux::decode(rest) {
        let bytes = value.data.clone().map(|range| &rest[range]);
        let (mut out, mut rewritten) = (Vec::new(), true);
        match (&value.status, bytes) {
            (mux::Status::New { to, global }, bytes) => {
                assert!(mux::push_new(&mut out, value.id, to, *global, bytes).is_ok());
            }
            (mux::Status::Keep { peer: Some(peer) }, Some(bytes)) if peer.network == Network::Udp => {
                assert!(mux::push_packet(&mut out, value.id, peer, bytes).is_ok());
            }
            (mux::Status::Keep { peer: None }, Some(bytes)) => {
                assert!(mux::push_keep(&mut out, value.id, bytes).is_ok());
            }
            (mux::Status::End, None) => mux::push_end(&mut out, value.id, value.error),
            _ => rewritten = false,
        }
        if rewritten {
            let again = mux::decode(&out).map(Step::done);
            let Ok(Some(again)) = again else {
                panic!("{value:?} was written as {again:?}");
            };
            assert_eq!((again.id, &again.status), (value.id, &value.status));
            assert_eq!(again.data.map(|range| &out[range]), bytes);
        }
        rest = &rest[used..];
    }
}
