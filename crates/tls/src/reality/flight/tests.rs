use super::*;
use crate::codec::extension::{KEY_SHARE, SUPPORTED_VERSIONS, body};
use crate::codec::{RETRY_RANDOM, record, write_server_hello};

const APPLICATION_RECORDS: [usize; 4] = [27, 900, 281, 53];

fn server_hello(random: [u8; 32], suite: u16, version: &[u8], group: u16, len: usize) -> Vec<u8> {
    let mut hello = Vec::new();
    let share = body::key_share(group, &vec![9; len]).unwrap();
    let extensions: [(u16, &[u8]); 2] = [(SUPPORTED_VERSIONS, version), (KEY_SHARE, &share)];
    write_server_hello(&mut hello, &random, &[7; 32], suite, &extensions).unwrap();
    hello
}

fn good() -> Vec<u8> {
    server_hello([1; 32], 0x1301, &[3, 4], 0x1d, 32)
}

fn flight(hello: &[u8], lengths: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::write(&mut bytes, HANDSHAKE, 3, hello);
    bytes.extend(CHANGE);
    for len in lengths {
        record::write(&mut bytes, APPLICATION, 3, &vec![0; *len - HEAD]);
    }
    bytes
}

#[test]
fn a_flight_is_known_wherever_it_is_cut() {
    for (lengths, more) in [
        (&APPLICATION_RECORDS[..], &[][..]),
        (&[2000], &[]),
        (&[513], &[]),
        (&[512, 20, 20, 20], &[]),
        (&[27, 900, 281, 53, 260], &[260]),
        (&[2000, 260, 30, 7000], &[260, 30, 7000]),
    ] {
        let bytes = flight(&good(), lengths);
        let counted = lengths.len() - more.len();
        let end = bytes.len() - more.iter().sum::<usize>();
        let shape = |more: &[usize]| Shape {
            hello: good(),
            group: Group::X25519,
            records: lengths[..counted].to_vec(),
            more: more.to_vec(),
        };
        let mut growing = Flight::default();
        for cut in 0..end {
            assert_eq!(growing.look(&bytes[..cut]), Look::More, "{lengths:?} {cut}");
        }
        assert_eq!(growing.look(&bytes[..end]), Look::Whole(shape(&[])), "{lengths:?}");
        assert_eq!(Flight::default().look(&bytes), Look::Whole(shape(more)), "{lengths:?}");
        // What has begun counts, once its length is there.
        let cut = bytes.len() - more.last().map_or(0, |last| last - HEAD);
        assert_eq!(
            Flight::default().look(&bytes[..cut]),
            Look::Whole(shape(more)),
            "{lengths:?}"
        );
    }
    let hybrid = server_hello([1; 32], 0x1302, &[3, 4], 0x11ec, 1120);
    let look = Flight::default().look(&flight(&hybrid, &[2000]));
    assert!(
        matches!(
            look,
            Look::Whole(Shape {
                group: Group::X25519MlKem768,
                ..
            })
        ),
        "{look:?}"
    );
}

#[test]
fn a_target_that_does_not_fit_is_told_by_its_first_record() {
    for hello in [
        server_hello([1; 32], 0x1301, &[3, 3], 0x1d, 32),
        server_hello([1; 32], 0xc02f, &[3, 4], 0x1d, 32),
        server_hello([1; 32], 0x1301, &[3, 4], 0x19, 133),
        server_hello([1; 32], 0x1301, &[3, 4], 0x1d, 31),
        server_hello(RETRY_RANDOM, 0x1301, &[3, 4], 0x1d, 32),
        [good(), vec![8]].concat(),
        vec![1, 0, 0, 1, 0],
    ] {
        let look = Flight::default().look(&flight(&hello, &[2000]));
        assert!(matches!(look, Look::Unfit(_)), "{look:?}");
    }
    let alert = [21, 3, 3, 0, 2, 2, 40];
    let long = [HANDSHAKE, 3, 3, 0x20, 0];
    let empty = [HANDSHAKE, 3, 3, 0, 0];
    for bytes in [&alert[..], &long, &empty, b"HTTP/1.1 400 Bad"] {
        assert!(matches!(Flight::default().look(bytes), Look::Unfit(_)));
    }
}

#[test]
fn what_goes_wrong_later_ends_it() {
    let hello = flight(&good(), &[]);
    let hello = &hello[..hello.len() - CHANGE.len()];
    for rest in [
        &[21, 3, 3, 0, 2, 2, 40][..],
        &[20, 3, 3, 0, 2, 1, 1],
        &[20, 3, 3, 0, 1, 2],
        &[20, 3, 3, 0, 1, 1, 22, 3, 3, 0, 1],
        &[20, 3, 3, 0, 1, 1, 23, 3, 3, 0x20, 0],
        &[20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 0],
    ] {
        let look = Flight::default().look(&[hello, rest].concat());
        assert!(matches!(look, Look::Broken(_)), "{rest:?} {look:?}");
    }
    let whole = flight(&good(), &APPLICATION_RECORDS);
    for next in [[21, 3, 3, 0, 2], [23, 3, 3, 0x20, 0], [23, 3, 3, 0, 0]] {
        let look = Flight::default().look(&[&whole[..], &next].concat());
        assert!(matches!(look, Look::Broken(_)), "{next:?} {look:?}");
    }
    // The longest record there may be.
    let most = flight(&good(), &[MAX_RECORD]);
    assert!(matches!(Flight::default().look(&most), Look::Whole(_)));
}
