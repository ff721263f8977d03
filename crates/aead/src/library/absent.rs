//! No library.

use crate::{Error, Suite};

/// A key that there is none of.
pub(crate) enum LibraryKey {}

impl LibraryKey {
    pub(crate) fn new(suite: Suite, _: &[u8]) -> Result<Self, Error> {
        Err(Error::NotBuilt { suite })
    }

    pub(crate) fn seal_in_place(&self, _: [u8; 12], _: &[u8], _: &mut [u8]) -> Result<[u8; 16], Error> {
        match *self {}
    }

    pub(crate) fn seal_in_place_to(&self, _: [u8; 12], _: &[u8], _: &mut [u8], _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn seal_to(&self, _: [u8; 12], _: &[u8], _: &[u8], _: &mut [u8], _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn open_in_place(&self, _: [u8; 12], _: &[u8], _: &mut [u8], _: &[u8; 16]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn open_to(&self, _: [u8; 12], _: &[u8], _: &[u8], _: &[u8], _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }
}
