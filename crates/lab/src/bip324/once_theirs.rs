//! The same of crate `bip324`.

use std::rc::Rc;

use bip324::{Role, SessionKeyMaterial};
use secp256k1::Secp256k1;
use secp256k1::ellswift::ElligatorSwiftParty;

use super::links::{Link, MAGIC, failed};
use super::once::{At, Once, answer, points, secrets, session_id};
use super::theirs::{handshake, start};
use crate::result::Case;
use crate::run::{Cell, CellError};
use crate::workload::subjects::BIP324;

/// Their cell of an operation, if they offer it by itself. The context is made once, as a program that cares would.
pub(super) fn theirs(once: Once, case: Case, links: &Rc<Vec<Link>>) -> Option<Cell> {
    let curve = Secp256k1::signing_only();
    let subject = BIP324;
    let at = At { case, subject, links };
    let made = match once {
        Once::Key => at.cell(
            |link| Ok(link.secrets[0]),
            move |secret| Ok(start(secret, Role::Initiator, &curve)?.1),
            |link| Ok(link.encodings[0]),
        ),
        Once::Agree => at.cell(
            |link| points(link, 1),
            |(a, b, secret)| {
                let keys = SessionKeyMaterial::from_ecdh(a, b, secret, ElligatorSwiftParty::B, MAGIC.0);
                Ok(answer(&keys.map_err(failed)?.session_id))
            },
            session_id,
        ),
        Once::Handshake => at.cell(
            secrets,
            move |secrets| {
                let [here, there] = handshake(&secrets, &curve)?;
                if here.id() != there.id() {
                    return Err(CellError::wrong("the two ends did not come together"));
                }
                Ok(answer(here.id()))
            },
            session_id,
        ),
        Once::Ecdh | Once::Expand | Once::Hkdf | Once::Schedule => return None,
    };
    Some(made)
}
