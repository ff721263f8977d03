//! `sealway identity`.

use sealway_drop::identity::{Identity as Own, KnownPeers, config_dir};
use sealway_drop::key::PublicKey;

use crate::args::{Identity, IdentityCommand};
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

pub(crate) fn run(options: &Identity) -> Result<Exit, Problem> {
    let Some(command) = &options.command else {
        let own = Own::load_or_make()?;
        output::print(&format!("{}\n", own.public()))?;
        if own.path().is_none() {
            note(
                "warning: this key cannot be kept, so it is another one each time; set SEALWAY_CONFIG_DIR to a folder of yours",
            );
        }
        return Ok(Exit::Done);
    };
    let dir = config_dir()
        .ok_or_else(|| Problem::usage("there is no folder to keep keys in").hint("set SEALWAY_CONFIG_DIR or HOME"))?;
    let known = KnownPeers::at(&dir);
    match command {
        IdentityCommand::List => {
            for peer in known.list()? {
                output::print(&format!("{}  {}  {}\n", peer.key, peer.first_seen, peer.name))?;
            }
            Ok(Exit::Done)
        }
        IdentityCommand::Remember { name, key } => {
            let key: PublicKey = key.parse().map_err(|error| {
                Problem::usage(format!("{key}: {error}")).hint("`sealway identity` at the other end shows its key")
            })?;
            let today = jiff::Zoned::now().date().to_string();
            known.remember(name, key, &today)?;
            Ok(Exit::Done)
        }
        IdentityCommand::Forget { name } => match known.forget(name)? {
            true => Ok(Exit::Done),
            false => {
                Err(Problem::usage(format!("no key is known as {name}")).hint("`sealway identity list` shows them"))
            }
        },
    }
}
