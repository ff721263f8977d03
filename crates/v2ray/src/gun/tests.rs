use super::*;

fn head(data: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write_head(data, &mut out).unwrap();
    out
}

/// Decodes a stream that arrives in pieces of `step` bytes: its data, and whether it is whole.
fn decode(kind: Kind, bytes: &[u8], step: usize) -> Result<(Vec<u8>, bool), Error> {
    let mut decoder = Decoder::new(kind);
    let mut data = Vec::new();
    for piece in bytes.chunks(step) {
        let mut at = 0;
        loop {
            let (event, used) = decoder.handle(&piece[at..])?;
            match event {
                Event::Data(range) => data.extend_from_slice(&piece[at..][range]),
                Event::More => {
                    assert_eq!(at + used, piece.len());
                    break;
                }
            }
            at += used;
        }
    }
    Ok((data, decoder.is_between()))
}

fn all(bytes: &[u8]) -> Result<(Vec<u8>, bool), Error> {
    let whole = decode(Kind::MultiHunk, bytes, bytes.len().max(1));
    assert_eq!(decode(Kind::MultiHunk, bytes, 1), whole);
    whole
}

#[test]
fn the_vector() {
    let message = [&head(5)[..], b"hello"].concat();
    assert_eq!(message, b"\x00\x00\x00\x00\x07\x0a\x05hello");
    assert_eq!(all(&message), Ok((b"hello".to_vec(), true)));
    assert_eq!(decode(Kind::Hunk, &message, 3), Ok((b"hello".to_vec(), true)));
}

#[test]
fn heads_are_as_long_as_they_say() {
    for data in [1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, MAX_DATA] {
        let head = head(data);
        assert_eq!(head.len(), head_len(data), "{data}");
        assert!(head.len() <= MAX_HEAD);
        let message = [head, vec![7; data]].concat();
        assert_eq!(decode(Kind::Hunk, &message, 5000), Ok((vec![7; data], true)), "{data}");
    }
    assert!(write_head(0, &mut Vec::new()).is_err());
    assert!(write_head(MAX_DATA + 1, &mut Vec::new()).is_err());
}

#[test]
fn many_fields_are_for_multi_only() {
    let message = b"\x00\x00\x00\x00\x07\x0a\x01a\x0a\x02bc";
    assert_eq!(all(message), Ok((b"abc".to_vec(), true)));
    assert!(matches!(decode(Kind::Hunk, message, 20), Err(Error::Malformed { .. })));
    // A message or a field may be empty.
    let empty = b"\0\0\0\0\0\0\0\0\0\x02\x0a\0\0\0\0\0\x05\x0a\0\x0a\x01z";
    assert_eq!(all(empty), Ok((b"z".to_vec(), true)));
}

#[test]
fn cuts_are_seen() {
    let message = [&head(300)[..], &[1; 300]].concat();
    for n in 1..message.len() {
        assert!(!all(&message[..n]).unwrap().1, "{n}");
    }
    assert!(all(b"").unwrap().1);
}

#[test]
fn what_is_no_message_is_refused() {
    for wrong in [
        &b"\x01\0\0\0\x03\x0a\x01a"[..],          // compressed
        b"\0\0\0\0\x03\x12\x01a",                 // field 2
        b"\0\0\0\0\x02\x08\x01",                  // field 1, a number
        b"\0\0\0\0\x03\x0a\x02ab",                // beyond the message
        b"\0\0\0\0\x01\x0a\x01a",                 // length beyond the message
        b"\0\0\0\0\x09\x0a\x81\x80\x80\x80\x00a", // length of five bytes
        b"\0\0\0\0\x04\x0a\x01a\x12",             // something behind the data
        b"\0\xff\xff\xff\xff",                    // too long
        b"\0\x00\x40\x00\x01",                    // one byte too long
    ] {
        assert!(all(wrong).is_err(), "{wrong:?}");
    }
    assert!(all(b"\0\x00\x40\x00\x00").is_ok());
}

#[test]
fn names() {
    let paths = |name: &str| {
        let names = Names::new(name);
        (
            names.path(Kind::Hunk).to_owned(),
            names.path(Kind::MultiHunk).to_owned(),
        )
    };
    let is = |hunk: &str, multi: &str| (hunk.to_owned(), multi.to_owned());
    assert_eq!(paths("GunService"), is("/GunService/Tun", "/GunService/TunMulti"));
    assert_eq!(paths(""), is("//Tun", "//TunMulti"));
    assert_eq!(paths("a b/c"), is("/a%20b%2Fc/Tun", "/a%20b%2Fc/TunMulti"));
    assert_eq!(paths("/x/y/T|M"), is("/x/y/T", "/x/y/M"));
    assert_eq!(paths("/x/y/T"), is("/x/y/T", "/x/y/T"));
    assert_eq!(paths("/a b/c?/ T|M|N"), is("/a%20b/c%3F/%20T", "/a%20b/c%3F/M"));
    assert_eq!(paths("/x"), is("//x", "//x"));
    assert_eq!(paths("/"), is("//", "//"));
    // As Go's url.PathEscape has it.
    assert_eq!(paths("-_.~$&+:=@").0, "/-_.~$&+:=@/Tun");
    assert_eq!(paths("!*'();,/?#[]%").0, "/%21%2A%27%28%29%3B%2C%2F%3F%23%5B%5D%25/Tun");
    assert_eq!(paths("ä").0, "/%C3%A4/Tun");
}

#[test]
fn calls() {
    let call = |name: &str, path: &str| Names::new(name).call(path);
    assert_eq!(call("a b", "/a%20b/Tun"), Call::Method(Kind::Hunk));
    assert_eq!(call("a b", "/a%20b/TunMulti"), Call::Method(Kind::MultiHunk));
    // v2ray does not escape.
    assert_eq!(call("a(b)/c", "/a(b)/c/Tun"), Call::Method(Kind::Hunk));
    assert_eq!(call("/x/T", "/x/T"), Call::Method(Kind::MultiHunk));
    for other in [
        "/a%20b/tun",
        "/a%20b/Tun/",
        "/b/Tun",
        "Tun",
        "",
        "/grpc.health.v1.Health/Check",
    ] {
        assert_eq!(call("a b", other), Call::Unknown, "{other}");
    }
}
