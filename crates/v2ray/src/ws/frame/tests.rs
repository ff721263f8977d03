use proptest::prelude::*;

use super::*;

/// Payload and control events of `wire`, read `step` bytes at a time.
fn read(role: Role, wire: &[u8], step: usize) -> Result<(Vec<u8>, Vec<Event>), Error> {
    let mut decoder = Decoder::new(role);
    let (mut data, mut events) = (Vec::new(), Vec::new());
    for piece in wire.chunks(step) {
        let mut piece = piece.to_vec();
        let mut at = 0;
        loop {
            let (event, used) = decoder.handle(&mut piece[at..])?;
            match event {
                Event::Data(range) => data.extend_from_slice(&piece[at..][range]),
                Event::More => {
                    assert_eq!(at + used, piece.len());
                    break;
                }
                event => {
                    let over = matches!(event, Event::Close(_));
                    events.push(event);
                    if over {
                        return Ok((data, events));
                    }
                }
            }
            at += used;
        }
    }
    Ok((data, events))
}

fn frame(payload: &[u8], role: Role, key: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; head_len(payload.len(), role)];
    frame.extend_from_slice(payload);
    seal_in_place(&mut frame, payload.len(), Opcode::Binary, role, key).unwrap();
    frame
}

/// RFC 6455 section 5.7.
#[test]
fn the_examples_of_the_rfc() {
    let text = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(read(Role::Client, &text, 9).unwrap().0, b"Hello");
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(Role::Server, &masked, 1).unwrap().0, b"Hello");
    let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
    assert_eq!(read(Role::Client, &fragments, 1).unwrap().0, b"Hello");
    let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    let (_, events) = read(Role::Client, &ping, 1).unwrap();
    assert!(matches!(&events[..], [Event::Ping(p)] if p.as_bytes() == b"Hello"));
    let pong = [0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(
        control(Opcode::Pong, b"Hello", Role::Client, [0x37, 0xfa, 0x21, 0x3d]).unwrap(),
        pong
    );
    assert_eq!(read(Role::Server, &pong, 2).unwrap().1, [Event::Pong]);
}

#[test]
fn all_sizes_of_length_at_every_boundary() {
    for (sender, receiver) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 70_000] {
            let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut wire = frame(&payload, sender, [9, 8, 7, 6]);
            assert_eq!(wire.len(), len + head_len(len, sender));
            wire.extend(control(Opcode::Close, &CLOSE_NORMAL, sender, [1, 2, 3, 4]).unwrap());
            for step in [1, 2, 3, 13, wire.len()] {
                let (data, events) = read(receiver, &wire, step).unwrap();
                assert!(data == payload, "{len} {step}");
                assert_eq!(events, [Event::Close(Some(1000))]);
            }
        }
    }
}

#[test]
fn control_frames_between_fragments() {
    let mut wire = vec![0x02, 0x02, b'a', b'b', 0x89, 0x01, b'!', 0x00, 0x00, 0x80, 0x01, b'c'];
    wire.extend([0x82, 0x01, b'd', 0x88, 0x00]);
    for step in 1..wire.len() {
        let (data, events) = read(Role::Client, &wire, step).unwrap();
        assert_eq!(data, b"abcd");
        assert!(matches!(&events[..], [Event::Ping(p), Event::Close(None)] if p.as_bytes() == b"!"));
    }
}

#[test]
fn wrong_frames() {
    for wire in [
        &[0xc2, 0x00][..],
        &[0xa2, 0x00],
        &[0x83, 0x00],
        &[0x8b, 0x00],
        &[0x82, 0x80],
        &[0x80, 0x00],
        &[0x02, 0x00, 0x82, 0x00],
        &[0x09, 0x00],
        &[0x89, 0x7e, 0x00, 0x7e],
        &[0x88, 0x01, 0x03],
        &[0x82, 0x7f, 0x80, 0, 0, 0, 0, 0, 0, 0],
    ] {
        for step in 1..=wire.len() {
            assert!(read(Role::Client, wire, step).is_err(), "{wire:02x?}");
        }
    }
    assert!(read(Role::Server, &[0x82, 0x00], 2).is_err());
    assert!(control(Opcode::Ping, &[0; 126], Role::Server, [0; 4]).is_err());
    assert!(seal_in_place(&mut [0; 4], 1, Opcode::Binary, Role::Server, [0; 4]).is_err());
    let mut decoder = Decoder::new(Role::Client);
    assert_eq!(decoder.handle(&mut [0x88, 0x00]), Ok((Event::Close(None), 2)));
    assert!(matches!(
        decoder.handle(&mut [0x82, 0x00]),
        Err(Error::OutOfOrder { .. })
    ));
}

/// A frame that says it is enormous costs no memory: payload passes as it comes.
#[test]
fn frames_of_any_length_are_streamed() {
    let mut decoder = Decoder::new(Role::Client);
    let mut head = [0x82, 0x7f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(decoder.handle(&mut head), Ok((Event::More, 10)));
    for _ in 0..5 {
        assert_eq!(decoder.handle(&mut [1, 2, 3]), Ok((Event::Data(0..3), 3)));
    }
    assert_eq!(decoder.handle(&mut []), Ok((Event::More, 0)));
}

proptest! {
    #[test]
    fn any_stream_in_any_pieces(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), any::<[u8; 4]>()), 0..6),
        step in 1..400usize, client: bool,
    ) {
        let (sender, receiver) = if client { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
        let mut wire = Vec::new();
        let mut want = Vec::new();
        for (payload, key) in &parts {
            wire.extend(frame(payload, sender, *key));
            want.extend_from_slice(payload);
        }
        prop_assert_eq!(read(receiver, &wire, step), Ok((want, vec![])));
    }
}
