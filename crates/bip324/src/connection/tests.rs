use super::*;
use crate::OVERHEAD;

fn key(byte: u8) -> LocalKey {
    LocalKey::new(&[byte; 32], &[byte; 32]).unwrap()
}

/// A peer that claims the longest packet there is, sends a part and stalls: memory is that of the part, and a little.
#[test]
fn a_claim_costs_no_memory() {
    let options = Options {
        contents_limit: CONTENTS_MAX,
        output_limit: usize::MAX,
        ..Options::default()
    };
    let mut a = Connection::initiator(Magic::MAINNET, key(1), options.clone()).unwrap();
    let mut b = Connection::responder(Magic::MAINNET, key(2), options).unwrap();
    for _ in 0..2 {
        let n = b.handle_input(a.output()).unwrap();
        a.advance_output(n);
        let n = a.handle_input(b.output()).unwrap();
        b.advance_output(n);
    }
    while b.poll_event().is_some() {}
    for kind in [Kind::Decoy, Kind::Genuine] {
        a.seal(kind, &vec![3; CONTENTS_MAX]).unwrap();
        let wire = a.output().to_vec();
        a.advance_output(wire.len());
        let mut at = 0;
        for step in [3, 1, 100, 4000, 50_000, 200_000, 1_000_000, 3_000_000] {
            b.handle_input(&wire[at..at + step]).unwrap();
            at += step;
            let (came, memory) = b.assembly.memory();
            assert_eq!(came, at - 3);
            assert!(memory <= came + 256 * 1024, "{memory} bytes for {came}");
            assert!(memory <= (2 * came).max(came + 1024), "{memory} bytes for {came}");
        }
        b.handle_input(&wire[at..]).unwrap();
        assert_eq!(wire.len(), CONTENTS_MAX + OVERHEAD);
        assert!(b.poll_event().is_some());
        assert!(
            b.assembly.memory().1 <= 4096,
            "the memory of a large packet is given back"
        );
    }
    assert!(
        a.out.tail().capacity() <= crate::buffer::KEPT,
        "so is that of the output"
    );
}

/// Connections and what comes out of them may be moved to other threads.
#[test]
fn everything_may_be_moved_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Connection>();
    moves::<Parts>();
    moves::<LocalKey>();
    moves::<Event>();
    moves::<PacketSealer>();
}
