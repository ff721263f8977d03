use proptest::prelude::*;

use super::*;
use crate::text::unhex;
use crate::{Error, Step};

fn one(bytes: &[u8]) -> Frame {
    match decode(bytes).unwrap() {
        Step::Done { value, used } => {
            assert_eq!(used, bytes.len());
            value
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn the_vector_of_a_new_stream() {
    let wire = unhex("0014 0001 01 01 01 01bb 02 0b 6578616d706c652e636f6d 0002 6869");
    let to = Destination::tcp(Domain::new("example.com").unwrap(), 443);
    let mut out = Vec::new();
    push_new(&mut out, 1, &to, None, Some(b"hi")).unwrap();
    assert_eq!(out, wire);
    let frame = one(&wire);
    assert_eq!(frame.status, Status::New { to, global: None });
    assert_eq!((frame.id, frame.error), (1, false));
    assert_eq!(&wire[frame.data.unwrap()], b"hi");
}

#[test]
fn the_vector_of_a_global_id() {
    let mut key = [0; 32];
    for (i, byte) in key.iter_mut().enumerate() {
        *byte = i as u8;
    }
    let key = BaseKey::from_bytes(key);
    let id = GlobalId::new(&key, "1.2.3.4:5678".parse().unwrap());
    assert_eq!(id.to_bytes().to_vec(), unhex("015a4f6a5ccfcd82"));
    // The same program on a socket for both families.
    assert_eq!(GlobalId::new(&key, "[::ffff:1.2.3.4]:5678".parse().unwrap()), id);
    assert_ne!(GlobalId::new(&key, "1.2.3.4:5679".parse().unwrap()), id);
    let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    let parsed = BaseKey::parse(text).unwrap();
    assert_eq!(GlobalId::new(&parsed, "1.2.3.4:5678".parse().unwrap()), id);
    for wrong in [
        "",
        "AAEC",
        &text[1..],
        &format!("{text}="),
        &format!("{text}AA"),
        "+/+/",
    ] {
        assert!(BaseKey::parse(wrong).is_none(), "{wrong:?}");
    }
    assert!(!format!("{key:?}").contains('1'), "a key is not shown");
}

#[test]
fn datagrams_name_their_peer_and_their_program() {
    let to = Destination::udp(Address::parse("192.0.2.7").unwrap(), 53);
    let global = GlobalId::from_wire([7; 8]);
    let mut out = Vec::new();
    push_new(&mut out, 0, &to, global, Some(b"a")).unwrap();
    let frame = one(&out);
    assert_eq!(frame.status, Status::New { to: to.clone(), global });
    // Zeros are no id, seven bytes are padding, and an id counts only with data.
    let at = out.len() - 3 - 8;
    out[at..at + 8].fill(0);
    assert!(matches!(one(&out).status, Status::New { global: None, .. }));
    out[at] = 1;
    out.remove(at + 1);
    out[1] -= 1;
    assert!(matches!(one(&out).status, Status::New { global: None, .. }));
    out.clear();
    push_new(&mut out, 0, &to, global, None).unwrap();
    assert!(matches!(one(&out).status, Status::New { global: None, .. }));

    out.clear();
    push_packet(&mut out, 0, &to, b"bc").unwrap();
    let frame = one(&out);
    assert_eq!(frame.status, Status::Keep { peer: Some(to) });
    assert_eq!(&out[frame.data.unwrap()], b"bc");
    out.clear();
    push_keep(&mut out, 9, b"").unwrap();
    let frame = one(&out);
    assert_eq!((frame.id, frame.status), (9, Status::Keep { peer: None }));
    assert_eq!(frame.data, Some(8..8), "an empty datagram is one");
}

#[test]
fn ends_and_padding() {
    for error in [false, true] {
        let mut out = Vec::new();
        push_end(&mut out, 0x1234, error);
        assert_eq!(out, [0, 4, 0x12, 0x34, 3, if error { 2 } else { 0 }]);
        let frame = one(&out);
        assert_eq!((frame.status, frame.error, frame.data), (Status::End, error, None));
    }
    // Behind what is known stands padding, in every kind of frame, up to 512 bytes.
    for (status, more) in [(2, &[][..]), (3, &[]), (4, &[]), (1, &[1, 0, 80, 1, 1, 2, 3, 4])] {
        let mut wire = vec![2, 0, 0, 5, status, 0];
        wire.extend_from_slice(more);
        wire.resize(514, 0);
        assert_eq!(one(&wire).id, 5);
    }
    // What follows the head of a Keep is an address only if it begins with 2.
    assert_eq!(one(&unhex("0005 0001 02 00 01")).status, Status::Keep { peer: None });
    assert_eq!(one(&unhex("0004 0001 04 01 0003 616263")).data, Some(8..11));
}

#[test]
fn what_is_no_frame() {
    for (wire, what) in [
        ("0003 0001 03", "shorter than its head"),
        ("0201 0001 03 00", "longer than 512"),
        ("0000", "empty"),
        ("0004 0001 05 00", "status"),
        ("0004 0001 00 00", "status 0"),
        ("0004 0001 01 00", "New without a target"),
        ("000c 0001 01 00 03 0050 01 01020304", "network"),
        ("000b 0001 01 00 01 0050 01 010203", "a short address"),
        ("000c 0001 01 00 01 0050 04 01020304", "an address of no type"),
        ("0009 0001 01 00 01 0050 02 00", "a name of no length"),
        ("0005 0001 02 00 02", "Keep with half an address"),
    ] {
        assert!(decode(&unhex(wire)).is_err(), "{what}");
    }
}

#[test]
fn names_that_stand_for_something() {
    let to = |name: &str| Destination::tcp(Domain::new(name).unwrap(), 1);
    assert!(is_mux(&target().unwrap()) && is_mux(&to("V1.mux.cool")));
    assert!(!is_mux(&to("v1.mux.cool.example")) && !is_mux(&Destination::udp(Domain::new(HOST).unwrap(), 1)));
    assert!(is_sing_mux(&to("sp.mux.sing-box.arpa")) && !is_sing_mux(&to("v1.mux.cool")));
}

#[test]
fn too_much_data_is_refused() {
    let (long, mut out) = (vec![0; 65_536], Vec::new());
    assert!(matches!(push_keep(&mut out, 1, &long), Err(Error::DoesNotFit { .. })));
    assert!(out.is_empty());
    push_keep(&mut out, 1, &long[1..]).unwrap();
    assert_eq!(one(&out).data.unwrap().len(), 65_535);
}

proptest! {
    #[test]
    fn any_frame_comes_back(
        id: u16, port: u16, kind in 0..4u8, name in "[a-z.]{1,255}", udp: bool,
        id8 in prop::option::of(any::<[u8; 8]>()), data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let address = Address::parse(&name).unwrap();
        let to = Destination { network: if udp { Network::Udp } else { Network::Tcp }, address, port };
        let global = id8.and_then(GlobalId::from_wire).filter(|_| udp);
        let mut out = Vec::new();
        let want = match kind {
            0 => {
                push_new(&mut out, id, &to, global, Some(&data)).unwrap();
                Status::New { to, global }
            }
            1 => {
                push_keep(&mut out, id, &data).unwrap();
                Status::Keep { peer: None }
            }
            2 => {
                let to = Destination { network: Network::Udp, ..to };
                push_packet(&mut out, id, &to, &data).unwrap();
                Status::Keep { peer: Some(to) }
            }
            _ => {
                push_end(&mut out, id, udp);
                Status::End
            }
        };
        prop_assert!(kind == 3 || out.len() <= data.len() + MAX_HEAD);
        for n in 0..out.len() {
            prop_assert!(matches!(decode(&out[..n]), Ok(Step::More(m)) if m > 0 && n + m <= out.len()));
        }
        let frame = one(&out);
        prop_assert_eq!((frame.id, frame.status), (id, want));
        if let Some(range) = frame.data {
            prop_assert_eq!(&out[range], &data[..]);
        }
    }
}
