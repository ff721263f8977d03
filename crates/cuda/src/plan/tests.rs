use super::tables::Group;
use super::*;

fn message(len: u32, opens: bool, aad_len: u32) -> Message {
    Message {
        slot: Slot(5),
        nonce: [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
        len,
        aad_len,
        opens,
    }
}

fn plan(bytes: usize) -> Plan {
    Plan::new(Limits::of_chunk(bytes), Bins::default(), Bins::default(), usize::MAX)
}

fn words(region: &[u8], at: usize, count: usize) -> Vec<u32> {
    region[at..].as_chunks::<4>().0[..count]
        .iter()
        .map(|&bytes| u32::from_le_bytes(bytes))
        .collect()
}

/// Lays out, and gives the whole input region with texts of zeros.
fn region(plan: &Plan) -> (Layout, Vec<u8>) {
    let mut layout = Layout::default();
    plan.lay_out(&mut layout);
    let mut region = vec![0; layout.input()];
    plan.write_tables(&layout, &mut region[layout.texts.end..]);
    (layout, region)
}

#[test]
fn messages_lie_in_whole_pieces() {
    let mut plan = plan(4096);
    // Text of 2 pieces, associated data of 1.
    let place = plan.push(message(17, false, 3)).unwrap();
    assert_eq!((place.src, place.aad, place.dst, place.dst_tag), (0, 32, 0, 32));
    // Text of 1 piece and a tag.
    let place = plan.push(message(16, true, 0)).unwrap();
    assert_eq!((place.src, place.src_tag, place.dst), (48, 64, 48));
    // Nothing but a tag.
    let place = plan.push(message(0, false, 0)).unwrap();
    assert_eq!((place.src, place.dst, place.dst_tag), (80, 64, 64));
    let (layout, region) = region(&plan);
    assert_eq!((layout.texts.clone(), layout.outputs.clone()), (0..80, 0..80));
    assert_eq!((layout.descs.clone(), layout.statuses.clone()), (96..192, 80..83));
    assert_eq!((layout.aad.clone(), layout.input()), (192..200, 224));
    assert_eq!(words(&region, layout.aad.start, 2), [2, 3]);
    let desc = |index: usize| words(&region, layout.descs.start + layout.position(index) * DESC, 8);
    assert_eq!(desc(0), [0, 0, 17, 5, 1, 2, 3, 1 << 1]);
    assert_eq!(desc(1), [3, 3, 16, 5, 1, 2, 3, 1]);
    assert_eq!(desc(2), [5, 4, 0, 5, 1, 2, 3, 0]);
}

#[test]
fn bins_go_by_blocks_and_direction_and_length() {
    let bytes = |blocks: u32| blocks * 64;
    let mut plan = plan(1 << 20);
    let lens = [
        bytes(257),
        0,
        bytes(3),
        bytes(3) + 1,
        bytes(6) + 1,
        bytes(14),
        bytes(14) + 1,
        bytes(256),
        1,
    ];
    for &len in &lens {
        plan.push(message(len, false, 0)).unwrap();
    }
    plan.push(message(2, true, 0)).unwrap();
    let (layout, region) = region(&plan);
    let group = |kernel, first, count| Group { kernel, first, count };
    assert_eq!(
        layout.groups,
        [
            group(Kernel::Lanes(Lanes::One), 0, 4),
            group(Kernel::Lanes(Lanes::Eight), 4, 1),
            group(Kernel::Lanes(Lanes::Sixteen), 5, 2),
            group(Kernel::Lanes(Lanes::Warp), 7, 2),
            group(Kernel::Parts(2), 9, 1),
        ]
    );
    let sorted: Vec<u32> = (0..10)
        .map(|at| words(&region, layout.descs.start + at * DESC + 8, 1)[0])
        .collect();
    assert_eq!(
        sorted,
        [
            bytes(3),
            1,
            0,
            2,
            bytes(3) + 1,
            bytes(14),
            bytes(6) + 1,
            bytes(256),
            bytes(14) + 1,
            bytes(257)
        ]
    );
}

#[test]
fn long_messages_have_parts() {
    let mut plan = plan(1 << 20);
    plan.push(message(9, false, 0)).unwrap();
    plan.push(message(64 * 256 * 2 + 1, true, 1)).unwrap();
    plan.push(message(64 * 256 * 3, false, 0)).unwrap();
    let (layout, region) = region(&plan);
    assert_eq!(layout.groups.last().unwrap().kernel, Kernel::Parts(6));
    assert_eq!(layout.sums, 6 * SUM);
    // What seals comes first.
    assert_eq!((layout.position(2), layout.position(1)), (1, 2));
    assert_eq!(words(&region, layout.first_part.start, 3), [0, 3, 6]);
    let part = |index: usize| words(&region, layout.parts.start + index * PART, 4);
    assert_eq!([part(0), part(2)], [[0, 0, 256, 0], [0, 512, 256, 2]]);
    assert_eq!([part(3), part(5)], [[1, 0, 256, 3], [1, 512, 1, 5]]);
}

#[test]
fn crowds_have_bins_of_their_own() {
    let few = Bins::default();
    let many = Bins {
        up_to: [14, 0, 0, 0, 256],
    };
    let mut plan = Plan::new(Limits::of_chunk(1 << 16), few, many, 2);
    plan.push(message(64 * 10, false, 0)).unwrap();
    let kernel = |plan: &Plan| region(plan).0.groups[0].kernel;
    assert_eq!(kernel(&plan), Kernel::Lanes(Lanes::Sixteen));
    plan.push(message(64 * 10, false, 0)).unwrap();
    assert_eq!(kernel(&plan), Kernel::Lanes(Lanes::One));
}

#[test]
fn a_full_chunk_keeps_to_its_limits() {
    for (len, aad) in [(0, 0), (1, 0), (15, 1), (64, 0), (700, 20), (0, 17), (3000, 0)] {
        for opens in [false, true] {
            let mut plan = plan(8192);
            let message = message(len, opens, aad);
            while plan.push(message).is_some() {}
            assert!(plan.len() > 0);
            let (layout, _) = region(&plan);
            let (input, output) = (layout.input(), layout.output());
            assert!(input <= 8192 && output <= 8192, "{input} {output}");
            // One more would not have fitted.
            assert!(
                input.max(output) + 3000 + 200 + SLACK > 8192,
                "{len} {aad}: {input} {output}"
            );
            plan.clear();
            assert_eq!((plan.len(), plan.push(message).unwrap().src), (0, 0));
        }
    }
}

#[test]
fn parts_are_limited_too() {
    // In parts from the first block on: a part for every message.
    let bins = Bins { up_to: [0; 5] };
    let limits = Limits {
        bytes: 1 << 16,
        parts: 3,
    };
    let mut plan = Plan::new(limits, bins, bins, usize::MAX);
    for _ in 0..3 {
        assert!(plan.push(message(1, false, 0)).is_some());
    }
    assert!(plan.push(message(1, false, 0)).is_none());
    assert!(plan.push(message(0, false, 0)).is_some(), "nothing has no parts");
}

#[test]
fn what_no_chunk_can_hold_is_refused() {
    let plan = plan(4096);
    let room = 4096 - SLACK - PIECE - DESC;
    assert_eq!(plan.check(&message(room as u32, true, 0)), Ok(()));
    assert_eq!(
        plan.check(&message(room as u32 + 1, true, 0)),
        Err(Wrong::TooLong {
            bytes: 4096 + PIECE,
            most: 4096
        })
    );
    assert!(plan.check(&message(0, true, room as u32 + 1)).is_err());
    assert!(plan.check(&message(u32::MAX, false, u32::MAX)).is_err());
    // The largest chunk takes the longest message that has room in it.
    let limits = Limits::of_chunk(1 << 32);
    let plan = Plan::new(limits, Bins::default(), Bins::default(), 0);
    assert_eq!(plan.check(&message(u32::MAX - (16 << 20), true, 0)), Ok(()));
}

#[test]
fn chunks_have_a_least_and_a_most() {
    assert!(check_chunk_bytes("a", 4096).is_ok() && check_chunk_bytes("a", 1 << 32).is_ok());
    for wrong in [0, 4095, 4080, 4097, (1 << 32) + 16, usize::MAX] {
        assert!(check_chunk_bytes("a", wrong).is_err(), "{wrong}");
    }
}
