//! gRPC: messages and names.

use crate::gun;

pub(super) fn gun_messages(data: &[u8]) {
    for kind in [gun::Kind::Hunk, gun::Kind::MultiHunk] {
        let run = |step: usize| {
            let mut decoder = gun::Decoder::new(kind);
            let mut payload = Vec::new();
            for piece in data.chunks(step) {
                let mut at = 0;
                loop {
                    match decoder.handle(&piece[at..]) {
                        Ok((gun::Event::Data(range), used)) => {
                            assert!(used > 0 && !range.is_empty(), "nothing was read");
                            payload.extend_from_slice(&piece[at..][range]);
                            at += used;
                        }
                        Ok((gun::Event::More, used)) => {
                            assert_eq!(at + used, piece.len(), "bytes were left");
                            break;
                        }
                        Err(error) => return (payload, Err(error)),
                    }
                }
            }
            (payload, Ok(decoder.is_between()))
        };
        let whole = run(data.len().max(1));
        assert_eq!(run(1), whole, "pieces made a difference");
        assert!(whole.0.len() <= data.len());
        if kind == gun::Kind::Hunk && whole.1 == Ok(true) && !whole.0.is_empty() {
            let mut again = Vec::new();
            assert!(gun::write_head(whole.0.len(), &mut again).is_ok());
            again.extend_from_slice(&whole.0);
            let mut decoder = gun::Decoder::new(gun::Kind::MultiHunk);
            let head = gun::head_len(whole.0.len());
            assert_eq!(
                decoder.handle(&again),
                Ok((gun::Event::Data(head..again.len()), again.len()))
            );
        }
    }
}

pub(super) fn gun_names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (name, path) = text.split_once('\0').unwrap_or((&text, ""));
    let names = gun::Names::new(name);
    let _ = names.call(path);
    for kind in [gun::Kind::Hunk, gun::Kind::MultiHunk] {
        let path = names.path(kind);
        assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
        let one = names.path(gun::Kind::Hunk) == names.path(gun::Kind::MultiHunk);
        let expected = if one { gun::Kind::MultiHunk } else { kind };
        assert_eq!(
            names.call(path),
            gun::Call::Method(expected),
            "a server does not know its own path"
        );
    }
}
