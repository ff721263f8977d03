//! Entries of REALITY: the first byte says where the rest is cut.

use crate::codec::record;
use crate::reality::flight::{Flight, Look, MAX_RECORD};
use crate::reality::gate::{Gate, Heard, Hearing, MAX_SEEN};
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
            let gate = Gate::new(&[1; 32], vec!["a.test".to_owned(), String::new()], Terms::default());
            assert!(gate.admit(&message, 0).is_err(), "a stranger was let in");
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
            whole.more = pieces.more;
            assert_eq!(whole, pieces, "where it was cut made a difference");
        }
        // Something wrong behind the flight is only seen where it has come.
        (Look::Broken(_), Look::Whole(_)) => {}
        (whole, pieces) => assert_eq!(whole, pieces, "where it was cut made a difference"),
    }
}
