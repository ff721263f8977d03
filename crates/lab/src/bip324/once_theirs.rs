//! The same of crate `bip324`.

use std::rc::Rc;

use bip324::{Role, SessionKeyMaterial};
use secp256k1::ellswift::{ElligatorSwift, ElligatorSwiftParty};
use secp256k1::{Secp256k1, SecretKey, SignOnly};

use super::links::{Link, MAGIC, failed};
use super::once::{Answer, Once, Work, answer, cell};
use super::theirs::{handshake, start};
use crate::result::Case;
use crate::run::{Cell, CellError};
use crate::workload::subjects::BIP324;

/// Their cell of an operation, if they offer it by itself.
pub(super) fn theirs(once: Once, case: Case, links: &Rc<Vec<Link>>) -> Option<Cell> {
    let curve = Rc::new(Secp256k1::signing_only());
    match once {
        Once::Key => Some(cell(case, BIP324, Key(curve), links)),
        Once::Agree => Some(cell(case, BIP324, Agree, links)),
        Once::Handshake => Some(cell(case, BIP324, Whole(curve), links)),
        Once::Ecdh | Once::Schedule => None,
    }
}

/// With a context that is made once, as a program that cares would.
#[derive(Clone)]
struct Key(Rc<Secp256k1<SignOnly>>);

impl Work for Key {
    type Ready = [u8; 32];

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        Ok(link.secrets[0])
    }

    fn work(&self, secret: Self::Ready) -> Result<Answer, CellError> {
        Ok(start(secret, Role::Initiator, &self.0)?.1)
    }

    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        Ok(link.encodings[0])
    }
}

#[derive(Clone)]
struct Agree;

impl Work for Agree {
    type Ready = (ElligatorSwift, ElligatorSwift, SecretKey);

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        let [a, b] = link.encodings.map(ElligatorSwift::from_array);
        Ok((a, b, SecretKey::from_slice(&link.secrets[1]).map_err(failed)?))
    }

    fn work(&self, (a, b, secret): Self::Ready) -> Result<Answer, CellError> {
        let keys = SessionKeyMaterial::from_ecdh(a, b, secret, ElligatorSwiftParty::B, MAGIC.0);
        Ok(answer(&keys.map_err(failed)?.session_id))
    }

    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        Ok(answer(&link.session_id))
    }
}

#[derive(Clone)]
struct Whole(Rc<Secp256k1<SignOnly>>);

impl Work for Whole {
    type Ready = [[u8; 32]; 2];

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        Ok(link.secrets)
    }

    fn work(&self, secrets: Self::Ready) -> Result<Answer, CellError> {
        let [here, there] = handshake(&secrets, &self.0)?;
        if here.id() != there.id() {
            return Err(CellError::wrong("the two ends did not come together"));
        }
        Ok(answer(here.id()))
    }

    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        Ok(answer(&link.session_id))
    }
}
