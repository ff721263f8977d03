//! The PIN by which an end knows whom to let in.

use sealway_drop_web::secret::Secret;
use zeroize::Zeroizing;

use crate::args::Guard;
use crate::problem::Problem;

/// What a PIN is told by where it is not said.
const PIN: &str = "SEALWAY_PIN";

/// The PIN that was said, that of the environment, or a new one. True: it is new, so whoever runs this must be told.
pub(super) fn pin(guard: &Guard) -> Result<Option<(Zeroizing<String>, bool)>, Problem> {
    let Some(said) = &guard.pin else { return Ok(None) };
    if !said.is_empty() {
        return Ok(Some((Zeroizing::new(said.clone()), false)));
    }
    if let Some(pin) = std::env::var(PIN).ok().filter(|pin| !pin.is_empty()) {
        return Ok(Some((Zeroizing::new(pin), false)));
    }
    let made = Secret::pin().map_err(Problem::no_random_bytes)?;
    Ok(Some((Zeroizing::new(made.reveal().to_owned()), true)))
}
