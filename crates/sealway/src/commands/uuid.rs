//! `sealway uuid`.

use sealway_v2ray::UserId;

use crate::args::Uuid;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run(options: &Uuid) -> Result<Exit, Problem> {
    let id = match options.text.as_ref().or(options.input.as_ref()) {
        Some(text) => UserId::parse(text).map_err(|e| {
            Problem::usage(format!("no id can be made from {text:?}: {e}"))
                .hint("give a text of 1 to 30 bytes, the 32 hexadecimal digits of an id, or nothing for a random one")
        })?,
        None => random()?,
    };
    output::answer(&format!("{id}\n"))
}

/// One that nobody has.
pub(crate) fn random() -> Result<UserId, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(Problem::no_random_bytes)?;
    Ok(UserId::random(random))
}
