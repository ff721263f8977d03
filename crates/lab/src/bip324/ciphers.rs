//! The face of whoever seals and opens packets one at a time, and our own sealer and opener behind it.

use sealway_bip324::{HEADER_LEN, Kind, LENGTH_LEN, PacketOpener, PacketSealer};

use super::links::Link;
use crate::run::CellError;

/// The packets of one direction, one at a time.
pub(super) trait Ciphers: 'static {
    /// The subject's name.
    const NAME: &'static str;

    type Sealer: Send;
    type Opener: Send;

    /// What seals, for each connection from where it begins.
    fn sealers(&self, links: &[Link]) -> Result<Vec<Self::Sealer>, CellError>;

    /// What opens, likewise.
    fn openers(&self, links: &[Link]) -> Result<Vec<Self::Opener>, CellError>;

    /// Seals a packet into exactly the bytes it takes; false if it is refused.
    fn seal(sealer: &mut Self::Sealer, decoy: bool, contents: &[u8], wire: &mut [u8]) -> bool;

    /// Opens a length: how many bytes follow it.
    fn length(opener: &mut Self::Opener, sealed: [u8; LENGTH_LEN]) -> Option<usize>;

    /// Opens what follows a length into `text`, which has as many bytes: the header, then the contents. Gives whether it is
    /// a decoy; `None` if it is not authentic.
    fn open(opener: &mut Self::Opener, sealed: &[u8], text: &mut [u8]) -> Option<bool>;
}

/// Our own sealer and opener.
pub(super) struct Own;

impl Ciphers for Own {
    const NAME: &'static str = "sealway:single";

    type Sealer = PacketSealer;
    type Opener = PacketOpener;

    fn sealers(&self, links: &[Link]) -> Result<Vec<PacketSealer>, CellError> {
        links
            .iter()
            .map(|link| Ok(PacketSealer::new(link.send_chain()?)))
            .collect()
    }

    fn openers(&self, links: &[Link]) -> Result<Vec<PacketOpener>, CellError> {
        links
            .iter()
            .map(|link| Ok(PacketOpener::new(link.recv_chain()?)))
            .collect()
    }

    #[inline(always)]
    fn seal(sealer: &mut PacketSealer, decoy: bool, contents: &[u8], wire: &mut [u8]) -> bool {
        let kind = if decoy { Kind::Decoy } else { Kind::Genuine };
        let Some(room) = wire.get_mut(LENGTH_LEN + HEADER_LEN..LENGTH_LEN + HEADER_LEN + contents.len()) else {
            return false;
        };
        room.copy_from_slice(contents);
        sealer.seal_in_place(kind, &[], wire).is_ok()
    }

    #[inline(always)]
    fn length(opener: &mut PacketOpener, sealed: [u8; LENGTH_LEN]) -> Option<usize> {
        opener.open_length(sealed).ok()
    }

    #[inline(always)]
    fn open(opener: &mut PacketOpener, sealed: &[u8], text: &mut [u8]) -> Option<bool> {
        text.copy_from_slice(sealed);
        let (kind, _) = opener.open_in_place(&[], text).ok()?;
        Some(kind == Kind::Decoy)
    }
}
