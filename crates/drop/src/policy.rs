//! Who may connect, and what a person is asked: all that follows from the options of a command, before anything is opened.
//!
//! Nothing here opens, prints or asks. A program fills in [`Wishes`] and does what [`Terms`] say. What cannot be done safely is [`Refused`].

mod check;
pub mod code;
mod end;
mod keys;
mod refused;
mod terms;

pub use check::{Check, Confirmed};
pub use end::End;
pub use keys::key_named;
pub use refused::Refused;
pub use terms::{Proof, Route, Shows, Source, Terms, Wishes, unsealed};
