//! Serves the configuration files given until SIGINT or SIGTERM, then lets connections finish for ten seconds.

use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The same runtime as that of `sealway run`.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.event_interval(7).enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let texts: Result<Vec<Vec<u8>>, _> = names.iter().map(std::fs::read).collect();
    let texts = texts?;
    let files: Vec<File<'_>> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| File { name, text })
        .collect();
    let loaded = load(&files, &Options::default());
    for problem in &loaded.problems {
        eprintln!("{problem:?}");
    }
    let config = loaded.config.ok_or("the configuration has errors")?;
    let server = Server::start(Settings::from_config(&config)?).await?;
    let (mut stop, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = stop.recv() => {}
        _ = end.recv() => {}
    }
    server.shutdown(Duration::from_secs(10)).await;
    Ok(())
}
