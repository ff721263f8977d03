//! Any batches, in any pieces.

use proptest::prelude::*;

use super::*;

proptest! {
    /// Whatever is sent in whatever batches, and received in whatever pieces, comes out as it went in.
    #[test]
    fn what_goes_in_comes_out(
        parts in prop::collection::vec((0_u8..6, 0_usize..9000), 0..20),
        cuts in prop::collection::vec(1_usize..3000, 1..50),
        seed in any::<[u32; 4]>(),
    ) {
        let (mut writer, mut filter) = (Writer::new(ID, Seed::new(seed), true), Filter::default());
        let (mut wire, mut whole) = (Vec::new(), Vec::new());
        for (kind, len) in parts {
            let batch = match kind {
                0 => client_hello(),
                1 => server_hello(0x1301, 32, true),
                2 | 3 => record(23, len),
                4 => record(23, len)[..len / 2].to_vec(),
                _ => vec![len as u8; len],
            };
            wire.extend(sealed(&mut writer, &mut filter, &batch));
            whole.extend(batch);
        }
        prop_assert!(writer.is_through() != Some(true) || filter.may_go_direct());
        let mut pieces = Vec::new();
        let mut rest = &wire[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = later;
        }
        let (payload, through) = opened(pieces);
        prop_assert_eq!(payload, whole);
        prop_assert!(wire.is_empty() || through == writer.is_through());
    }
}
