//! `sealway proxy-api`.

use sealway_api::client::{self, Failed};

use crate::args::ProxyApi;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run(options: &ProxyApi) -> Result<Exit, Problem> {
    match call(&options.words) {
        Ok(()) => Ok(Exit::Done),
        Err(failed @ Failed::Server(_)) => Err(Problem::new(Exit::Remote, failed)),
        Err(failed) => Err(Problem::usage(failed)),
    }
}

/// Does what the words of `xray api` say.
pub(crate) fn call(words: &[String]) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::Server(format!("cannot start: {error}")))?;
    // Who does not read what is printed does not want the rest of it.
    let mut print = |text: &str| drop(output::print(text));
    runtime.block_on(client::run(words, &mut print))
}
