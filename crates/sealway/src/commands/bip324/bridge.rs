//! `sealway bip324 bridge`.

use sealway_bip324::decoy::DecoyPolicy;
use sealway_bridge::{Bridge as Running, Decoys, Error, Incoming, Outgoing, Settings, Target};
use tracing_subscriber::filter::LevelFilter;

use super::problem;
use crate::args::{Bridge, IncomingWord, LogWord, OutgoingWord};
use crate::exit::Exit;
use crate::log;
use crate::problem::Problem;
use crate::signals::{Stops, runtime, take_every_descriptor};

pub(crate) fn run(options: &Bridge) -> Result<Exit, Problem> {
    let target = Target::parse(&options.connect, options.network).map_err(|error| {
        problem(&error).hint("give --connect as HOST:PORT; the port may be left out for a network that has a name")
    })?;
    let mut settings = Settings::new(options.listen, target, options.network);
    settings.outgoing = match options.outgoing {
        OutgoingWord::Auto => Outgoing::Auto,
        OutgoingWord::V2 => Outgoing::V2,
        OutgoingWord::V1 => Outgoing::V1,
    };
    settings.incoming = match options.incoming {
        IncomingWord::Any => Incoming::Any,
        IncomingWord::V2 => Incoming::V2,
        IncomingWord::V1 => Incoming::V1,
    };
    settings.decoys = decoys(options)?;
    settings.connections = usize::try_from(options.max_connections).unwrap_or(usize::MAX);
    settings.connections_per_address = usize::try_from(options.max_per_address).unwrap_or(usize::MAX);
    log::to_stderr(match options.log {
        LogWord::None => LevelFilter::OFF,
        LogWord::Error => LevelFilter::ERROR,
        LogWord::Warning => LevelFilter::WARN,
        LogWord::Info => LevelFilter::INFO,
    });
    take_every_descriptor();
    let runtime = runtime()?;
    let done = runtime.block_on(until_told(settings));
    // A name that the system still looks up is not waited for.
    runtime.shutdown_background();
    log::flush();
    done
}

fn decoys(options: &Bridge) -> Result<Option<Decoys>, Problem> {
    if options.decoys.is_none() && options.cover.is_none() {
        return Ok(None);
    }
    let (min, max) = (*options.decoy_size.start(), *options.decoy_size.end());
    let policy = DecoyPolicy::new(options.decoys.unwrap_or(0), min, max);
    Ok(Some(Decoys {
        policy: policy.map_err(Problem::usage)?,
        cover: options.cover,
    }))
}

/// Serves until a signal comes, then lets connections finish until the time or another signal ends them.
async fn until_told(settings: Settings) -> Result<Exit, Problem> {
    let stops = Stops::new()?;
    let (to, network) = (settings.connect.clone(), settings.network);
    let bridge = Running::start(settings).map_err(|error| {
        let problem = problem(&error);
        match error {
            Error::Listen { .. } => {
                problem.hint("is another program there already? ports below 1024 need rights of their own")
            }
            _ => problem,
        }
    })?;
    log::tell(format_args!(
        "sealway {} listens on {} for {to}, {network}",
        crate::args::version(),
        bridge.address()
    ));
    let stats = std::sync::Arc::clone(bridge.stats());
    let hangup = || tracing::info!("SIGHUP: the bridge reads no files; restart it to change what it does");
    stops.until_told(hangup, |grace| bridge.shutdown(grace)).await;
    log::tell(stats.totals());
    Ok(Exit::Done)
}
