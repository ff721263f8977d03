//! Entries of REALITY: the first byte says where the rest is cut.

use crate::codec::record;
use crate::reality::flight::{Flight, Look, MAX_RECORD};
use crate::reality::gate::{Denied, Gate, Heard, Hearing, MAX_SEEN};
use crate::reality::session_id::Terms;

/// The first bytes of a connection.
pub(super) fn hello(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let whole = Hearing::default().look(bytes);
    let mut hearing = Hearing::default();
    let step = usize::from(*cut) + 1;
    let mut in_pieces = Heard::More;
    for end in (0..=bytes.len()).step_by(step).chain([bytes.len()]) {
        in_pieces = hearing.look(&bytes[..end]);
        if in_pieces != Heard::More {
            break;
        }
    }
    assert_eq!(in_pieces, whole, "where it was cut made a difference");
    match whole {
        Heard::Hello(message, used) => {
            assert!(used <= bytes.len() && used <= MAX_SEEN && message.len() + record::HEAD <= used);
            // Whoever had the key would be let in with what strangers think of first.
            let terms = Terms {
                short_ids: vec![[0; 8]],
                ..Terms::default()
            };
            let gate = Gate::new(&[1; 32], vec!["a.test".to_owned(), String::new()], terms);
            let admitted = gate.admit(&message, 0);
            let stranger = !matches!(admitted, Ok(_) | Err(Denied::Claim(..)));
            assert!(stranger, "somebody without the key was heard: {admitted:?}");
        }
        Heard::More => assert!(bytes.len() <= MAX_SEEN),
        Heard::Other => {}
    }
}

/// A target's flight.
pub(super) fn flight(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let whole = Flight::default().look(bytes);
    let mut flight = Flight::default();
    let step = usize::from(*cut) + 1;
    let mut in_pieces = Look::More;
    for end in (0..=bytes.len()).step_by(step).chain([bytes.len()]) {
        in_pieces = flight.look(&bytes[..end]);
        if in_pieces != Look::More {
            break;
        }
    }
    match (whole, in_pieces) {
        (Look::Whole(mut whole), Look::Whole(pieces)) => {
            assert!(matches!(whole.records.len(), 1 | 4));
            assert!(
                whole
                    .records
                    .iter()
                    .all(|len| (record::HEAD + 1..=MAX_RECORD).contains(len))
            );
            assert!(whole.records.iter().sum::<usize>() + whole.hello.len() < bytes.len());
            // What follows is only seen where it has come.
            whole.more.clone_from(&pieces.more);
            assert_eq!(whole, pieces, "where it was cut made a difference");
        }
        // Something wrong behind the flight is only seen where it has come.
        (Look::Broken(_), Look::Whole(_)) => {}
        (whole, pieces) => assert_eq!(whole, pieces, "where it was cut made a difference"),
    }
}
