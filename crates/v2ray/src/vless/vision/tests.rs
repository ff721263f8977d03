mod whole;

use std::convert::Infallible;

use super::*;
use crate::{Error, UserId};

const ID: UserId = UserId::from_bytes([7; 16]);

fn record(kind: u8, body: usize) -> Vec<u8> {
    let mut record = vec![kind, 3, 3];
    record.extend_from_slice(&(body as u16).to_be_bytes());
    record.resize(5 + body, 0x5a);
    record
}

fn client_hello() -> Vec<u8> {
    let mut hello = record(22, 512);
    (hello[2], hello[5]) = (1, 1);
    hello
}

/// A ServerHello with a session id of this length and, if it means TLS 1.3, the extension that says so.
fn server_hello(suite: u16, id: u8, tls13: bool) -> Vec<u8> {
    let mut hello = vec![2, 0, 0, 0, 3, 3];
    hello.extend_from_slice(&[0x11; 32]);
    hello.push(id);
    hello.extend_from_slice(&vec![0x22; usize::from(id)]);
    hello.extend_from_slice(&suite.to_be_bytes());
    hello.push(0);
    let mut extensions = vec![0, 0x33, 0, 36];
    extensions.extend_from_slice(&[0x33; 36]);
    if tls13 {
        extensions.extend_from_slice(&[0, 0x2b, 0, 2, 3, 4]);
    }
    hello.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
    hello.extend_from_slice(&extensions);
    let mut whole = vec![22, 3, 3];
    whole.extend_from_slice(&(hello.len() as u16).to_be_bytes());
    whole.extend_from_slice(&hello);
    whole
}

/// A filter that has seen a handshake with this suite, up to its end.
fn seen(suite: u16, tls13: bool) -> Filter {
    let mut filter = Filter::default();
    filter.hear(&client_hello());
    filter.look(&server_hello(suite, 32, tls13));
    filter.hear(&[&record(20, 1)[..], &record(23, 53)].concat());
    filter
}

/// What a batch becomes on the wire, behind which the rest stands as it is.
fn sealed(writer: &mut Writer, filter: &mut Filter, batch: &[u8]) -> Vec<u8> {
    if writer.is_through().is_some() {
        return batch.to_vec();
    }
    let padded = pad(writer, filter, batch, 0x8000_0000);
    let mut wire = Vec::new();
    let mut at = 0;
    for block in &padded.blocks {
        assert_eq!(block.content.start, at);
        at = block.content.end;
        let before = wire.len();
        wire.extend_from_slice(block.head());
        wire.extend_from_slice(&batch[block.content.clone()]);
        wire.resize(wire.len() + block.padding, 0);
        assert!(wire.len() - before <= MAX_BLOCK);
    }
    assert_eq!(at, padded.end);
    wire.extend_from_slice(&batch[padded.end..]);
    wire
}

fn pad(writer: &mut Writer, filter: &mut Filter, batch: &[u8], random: u32) -> Padded {
    match writer.pad(batch, filter, || Ok::<_, Infallible>(random)) {
        Ok(padded) => padded,
        Err(never) => match never {},
    }
}

/// The payload of what is received in these pieces, and how its blocks ended.
fn opened<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Option<bool>) {
    let mut reader = Reader::new(ID);
    let (mut payload, mut held) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        while let Some(part) = reader.next(&held).unwrap() {
            assert!(part.skip + part.content > 0, "a part of nothing");
            payload.extend_from_slice(&held[part.skip..part.skip + part.content]);
            held.drain(..part.skip + part.content);
        }
        if reader.is_through().is_some() {
            payload.append(&mut held);
        }
    }
    (payload, reader.is_through())
}

#[test]
fn the_bytes_of_blocks() {
    let mut wire = [7; 16].to_vec();
    wire.extend_from_slice(b"\x00\x00\x05\x00\x03hello\0\0\0\x01\x00\x02\x00\x00, then as it is");
    assert_eq!(opened([&wire[..]]), (b"hello, then as it is".to_vec(), Some(false)));
    wire[29] = 2;
    assert_eq!(opened([&wire[..]]), (b"hello, then as it is".to_vec(), Some(true)));

    let (mut writer, mut filter) = (Writer::new(ID, Seed::new([0, 0, 0, 4]), true), Filter::default());
    let first = sealed(&mut writer, &mut filter, b"hello");
    assert_eq!(first[..16], [7; 16]);
    assert_eq!(&first[16..], b"\x00\x00\x05\x00\x02hello\0\0");
    assert_eq!(sealed(&mut writer, &mut filter, b"x"), b"\x00\x00\x01\x00\x02x\0\0");
}

#[test]
fn an_end_within_a_block_is_known() {
    let mut wire = [7; 16].to_vec();
    wire.extend_from_slice(b"\x00\x00\x05\x00\x03hello\0\0\0\x00\x00\x00\x00\x00\x01\x00\x02\x00\x00ok");
    for end in 0..=wire.len() {
        let (mut reader, mut at) = (Reader::new(ID), 0);
        while let Some(part) = reader.next(&wire[at..end]).unwrap() {
            at += part.skip + part.content;
        }
        // In front of a head, or in one, of which something is left then.
        let is_whole = at == end && reader.may_end();
        assert_eq!(is_whole, [0, 16, 29, 34, 41].contains(&end), "{end}");
    }
}

#[test]
fn every_boundary() {
    let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), seen(0x1301, true));
    let mut wire = sealed(&mut writer, &mut filter, b"");
    let batches = [record(20, 1), record(23, 53), record(23, 300)];
    for batch in &batches {
        wire.extend(sealed(&mut writer, &mut filter, batch));
    }
    let whole = (batches.concat(), Some(true));
    assert_eq!(opened(wire.chunks(1)), whole);
    for at in 0..wire.len() {
        assert_eq!(opened([&wire[..at], &wire[at..]]), whole, "cut at {at}");
    }
}

#[test]
fn a_direction_without_the_id_has_no_blocks() {
    let mut other = [7; 16].to_vec();
    other[15] = 8;
    other.extend_from_slice(b"\x00\x00\x05\x00\x03hello\0\0\0");
    for pieces in [1, 7, other.len()] {
        assert_eq!(opened(other.chunks(pieces)), (other.clone(), Some(false)));
    }
    // What might be the id is not taken for payload yet.
    let mut reader = Reader::new(ID);
    assert_eq!(reader.next(&[7; 15]), Ok(None));
    assert_eq!(reader.is_through(), None);
}

#[test]
fn the_longest_lengths_take_no_memory() {
    let mut reader = Reader::new(ID);
    let mut head = [7; 16].to_vec();
    head.extend_from_slice(&[1, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(reader.next(&head), Ok(Some(Part { skip: 21, content: 0 })));
    let bytes = vec![1; 40_000];
    let part = |skip, content| Ok(Some(Part { skip, content }));
    assert_eq!(reader.next(&bytes), part(0, 40_000));
    assert_eq!(reader.next(&bytes), part(0, 25_535));
    assert_eq!(reader.next(&bytes), part(40_000, 0));
    assert_eq!(reader.is_through(), None);
    assert_eq!(reader.next(&bytes), part(25_535, 0));
    assert_eq!(reader.is_through(), Some(false));
}

#[test]
fn unknown_commands_and_floods_of_nothing_are_refused() {
    let mut reader = Reader::new(ID);
    let mut wire = [7; 16].to_vec();
    wire.extend_from_slice(&[3, 0, 0, 0, 0]);
    assert!(matches!(reader.next(&wire), Err(Error::Field { got: 3, .. })));

    let flood = |blocks: u32, with: &[u8]| {
        let mut wire = [7; 16].to_vec();
        for _ in 0..blocks {
            wire.extend_from_slice(&[0, 0, 0, 0, 1, 9]);
        }
        wire.extend_from_slice(with);
        let mut reader = Reader::new(ID);
        let first = reader.next(&wire);
        first.and_then(|part| reader.next(&wire[part.unwrap().skip + part.unwrap().content..]))
    };
    assert!(flood(MAX_EMPTY, b"").is_ok());
    assert!(flood(MAX_EMPTY + 1, b"").is_err());
    // Content between them begins the count anew.
    let mut with = b"\x00\x00\x01\x00\x00x".to_vec();
    with.extend_from_slice(&[0, 0, 0, 0, 0].repeat(MAX_EMPTY as usize));
    assert!(flood(MAX_EMPTY, &with).is_ok());
}

#[test]
fn what_the_filter_finds() {
    for (suite, direct) in [
        (0x1301, true),
        (0x1302, true),
        (0x1303, true),
        (0x1304, true),
        (0x1305, false),
        (0xc02f, false),
    ] {
        for id in [0, 32] {
            let mut filter = Filter::default();
            filter.look(&client_hello());
            assert!(filter.is_tls() && !filter.is_tls12());
            let mut flight = server_hello(suite, id, true);
            flight.extend(record(23, 2000));
            filter.look(&flight);
            assert!(filter.is_tls12() && !filter.is_looking());
            assert_eq!(filter.may_go_direct(), direct, "{suite:x}, id of {id}");
        }
        assert!(!seen(suite, false).may_go_direct());
        assert!(!seen(suite, false).is_looking());
    }
    // The extension behind the ServerHello is somebody else's.
    let mut flight = server_hello(0x1301, 32, false);
    flight.extend_from_slice(&[0, 0x2b, 0, 2, 3, 4]);
    let mut filter = Filter::default();
    filter.look(&flight);
    assert!(filter.is_tls12() && !filter.may_go_direct());
    // A session id that is too long leads nowhere.
    let mut wrong = server_hello(0x1301, 32, true);
    wrong[43] = 33;
    let mut filter = Filter::default();
    filter.look(&wrong);
    assert!(!filter.may_go_direct());
}

/// A ServerHello in two pieces is found as long as the first holds the suite.
#[test]
fn a_hello_in_two_pieces() {
    let hello = server_hello(0x1302, 32, true);
    for at in 1..hello.len() {
        let mut filter = Filter::default();
        filter.look(&hello[..at]);
        filter.look(&hello[at..]);
        assert_eq!(filter.may_go_direct(), at >= 78, "cut at {at}");
    }
}

#[test]
fn the_budget_is_shared_and_ends() {
    let mut filter = Filter::default();
    for _ in 0..7 {
        filter.look(b"GET / HTTP/1.1");
    }
    assert!(filter.is_looking() && filter.is_nearly_spent());
    filter.look(&client_hello());
    assert!(filter.is_tls() && !filter.is_looking());
    filter.look(&server_hello(0x1301, 32, true));
    assert!(!filter.may_go_direct());
    // A long batch counts by blocks.
    let mut filter = Filter::default();
    filter.look(&[0; 8 * MAX_BLOCK]);
    assert!(!filter.is_looking());
}

fn commands(padded: &Padded) -> Vec<u8> {
    padded
        .blocks
        .iter()
        .map(|block| block.head()[block.head().len() - 5])
        .collect()
}

#[test]
fn what_ends_the_blocks() {
    let fresh = || Writer::new(ID, Seed::default(), true);
    for (suite, tls13, command) in [(0x1301, true, 2), (0x1305, true, 1), (0xc02f, false, 1)] {
        let (mut writer, mut filter) = (fresh(), seen(suite, tls13));
        // What follows a ServerHello in its batch is still the handshake.
        let mut flight = record(22, 90);
        flight.extend(record(23, 1000));
        let first = pad(&mut writer, &mut filter, &flight, 0);
        assert_eq!((commands(&first), writer.is_through()), (vec![0], None));
        let mut batch = record(23, 100);
        batch.extend(record(23, 9000));
        let last = pad(&mut writer, &mut filter, &batch, 0);
        assert_eq!(last.end, batch.len());
        assert_eq!(commands(&last).last(), Some(&command));
        assert!(commands(&last).iter().rev().skip(1).all(|&earlier| earlier == 0));
        assert_eq!(writer.is_through(), Some(command == 2));
    }
}

/// A server's flight may be read in pieces that begin with a record: none of them is bare, nor is its length.
#[test]
fn a_flight_is_no_payload_before_the_client_has_finished() {
    for (suite, command) in [(0x1301, 2), (0x1305, 1)] {
        let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), Filter::default());
        filter.hear(&client_hello());
        let mut hello = server_hello(suite, 32, true);
        hello.extend(record(20, 1));
        let mut certificate = record(23, 3_600);
        certificate.extend(record(23, 16_000));
        for part in [&hello, &record(23, 40), &certificate, &record(23, 90)] {
            assert!(
                commands(&pad(&mut writer, &mut filter, part, 0))
                    .iter()
                    .all(|&one| one == 0)
            );
        }
        let mut finished = record(20, 1);
        finished.extend(record(23, 53));
        for byte in finished {
            assert!(filter.is_within_handshake() || byte == 0x5a);
            filter.hear(&[byte]);
        }
        let last = pad(&mut writer, &mut filter, &record(23, 500), 0);
        assert_eq!(commands(&last), [command]);
    }
}

/// What begins like a ServerHello and is none keeps nobody in blocks.
#[test]
fn what_only_looks_like_a_handshake_ends_too() {
    let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), Filter::default());
    pad(&mut writer, &mut filter, b"\x16\x03\x03\x00\x08\x02 is no hello", 0);
    assert!(filter.is_tls12());
    let mut batches = 1;
    while writer.is_through().is_none() {
        pad(&mut writer, &mut filter, &[b'x'; 5000], 0);
        batches += 1;
        assert!(batches < 10);
    }
    assert_eq!(writer.is_through(), Some(false));
    // A handshake of TLS 1.2 in many batches is one.
    let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), seen(0xc02f, false));
    for _ in 0..50 {
        pad(&mut writer, &mut filter, &record(22, 700), 0);
    }
    assert_eq!(writer.is_through(), None);
}

#[test]
fn who_is_told_to_stay_never_goes_direct() {
    let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), false), seen(0x1301, true));
    let last = pad(&mut writer, &mut filter, &record(23, 100), 0);
    assert_eq!((commands(&last), writer.is_through()), (vec![1], Some(false)));
}

#[test]
fn what_is_left_of_a_batch_begins_with_a_record() {
    let mut batch = record(23, 100);
    batch.extend(record(23, 200));
    let whole = batch.len();
    batch.extend_from_slice(&record(23, 16_000)[..9000]);
    for cut in [batch.len(), whole + 1, whole + 3, whole + 5] {
        let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), seen(0x1301, true));
        let padded = pad(&mut writer, &mut filter, &batch[..cut], 0);
        assert_eq!((padded.end, writer.is_through()), (whole, Some(true)), "{cut}");
    }
    // Behind records of another kind, or none, nothing is left uncovered.
    for other in [
        &record(21, 2)[..],
        b"\x17\x03\x01\x00\x05",
        b"\x17\x02",
        b"GET / HTTP/1.1",
    ] {
        let mut batch = batch[..whole].to_vec();
        batch.extend_from_slice(other);
        let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), seen(0x1301, true));
        let padded = pad(&mut writer, &mut filter, &batch, 0);
        assert_eq!((padded.end, writer.is_through()), (batch.len(), None), "{other:x?}");
    }
}

/// However a long download is cut, its blocks end soon after the handshake, and never within a record.
#[test]
fn a_download_in_any_pieces_goes_direct() {
    let mut stream = record(22, 90);
    stream.extend(record(20, 1));
    for _ in 0..6 {
        stream.extend(record(23, 16_401));
    }
    let borders: Vec<usize> = (0..6).map(|n| 95 + 6 + (n + 1) * 16_406).collect();
    for size in (1..20_000).step_by(97) {
        let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), seen(0x1303, true));
        let mut at = 0;
        while writer.is_through().is_none() {
            let batch = &stream[at..(at + size).min(stream.len())];
            at += pad(&mut writer, &mut filter, batch, 0).end;
        }
        assert_eq!(writer.is_through(), Some(true));
        assert!(borders[..2].contains(&at), "pieces of {size}: {at}");
    }
}

#[test]
fn what_is_no_tls_ends_early() {
    let (mut up, mut down) = (
        Writer::new(ID, Seed::default(), true),
        Writer::new(ID, Seed::default(), true),
    );
    let mut filter = Filter::default();
    for _ in 0..3 {
        pad(&mut up, &mut filter, b"HELO there", 0);
        pad(&mut down, &mut filter, b"250 hello", 0);
    }
    assert_eq!((up.is_through(), down.is_through()), (None, None));
    let long = vec![1; 20_000];
    let last = pad(&mut up, &mut filter, &long, 0);
    assert_eq!((commands(&last), last.end), (vec![1], MAX_BLOCK / 2));
    assert_eq!(up.is_through(), Some(false));
    pad(&mut down, &mut filter, b"354 go on", 0);
    assert_eq!(down.is_through(), Some(false));
    // Nothing is no reason to end.
    let mut writer = Writer::new(ID, Seed::default(), true);
    assert_eq!(commands(&pad(&mut writer, &mut filter, b"", 0)), [0]);
}

#[test]
fn how_content_is_split() {
    let lengths = |batch: &[u8]| {
        let (mut writer, mut filter) = (Writer::new(ID, Seed::default(), true), Filter::default());
        let padded = pad(&mut writer, &mut filter, batch, u32::MAX);
        let lengths: Vec<usize> = padded.blocks.iter().map(|block| block.content.len()).collect();
        lengths
    };
    assert_eq!(lengths(&[0; 8170]), [8170]);
    assert_eq!(lengths(&[0; 8171]), [4096, 4075]);
    assert_eq!(lengths(&[0; 16_384]), [4096, 4096, 4096, 4096]);
    let with = |at: usize| {
        let mut batch = vec![0; 8192];
        batch[at..at + 3].copy_from_slice(&[23, 3, 3]);
        lengths(&batch)[0]
    };
    assert_eq!(with(20), 4096);
    assert_eq!(with(21), 21);
    assert_eq!(with(8171), 8171);
    assert_eq!(with(8172), 4096);
    let mut two = vec![0; 8192];
    two[100..103].copy_from_slice(&[23, 3, 3]);
    two[5000..5003].copy_from_slice(&[23, 3, 3]);
    assert_eq!(lengths(&two)[0], 5000);
}

#[test]
fn how_much_padding_there_is() {
    let usual = Seed::default();
    for (content, long, random, padding) in [
        (0, true, 0, 900),
        (0, true, u32::MAX, 900 + 499),
        (899, true, 0, 1),
        (900, true, 0, 0),
        (900, true, u32::MAX, 255),
        (0, false, 0, 0),
        (0, false, u32::MAX, 255),
        (MAX_CONTENT, true, u32::MAX, 0),
        (MAX_CONTENT - 7, false, u32::MAX, 7),
    ] {
        assert_eq!(usual.padding(content, long, random), padding, "{content} {long}");
    }
    // A base below the content, bounds of nothing, and numbers beyond all blocks.
    assert_eq!(Seed::new([900, 0, 10, 0]).padding(500, true, u32::MAX), 0);
    assert_eq!(Seed::new([0, 0, 0, 0]).padding(0, true, u32::MAX), 0);
    let huge = Seed::new([u32::MAX; 4]);
    for random in [0, 1, u32::MAX] {
        assert!(huge.padding(3000, true, random) <= MAX_CONTENT - 3000);
    }
    assert_eq!(huge, Seed::new([u32::MAX, 8192, 8192, 8192]));
}
