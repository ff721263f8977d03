//! Serves a folder and nothing else, so that it is built in a fraction of the time: for `scripts/measure-web`, whose words it takes.
//!
//! `web share --http FOLDER --listen ADDRESS --json [--plain]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop_web::certificate::Certificate;
use sealway_drop_web::server::{Options, Server, What};
use sealway_drop_web::telling::Quiet;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let after = |word: &str| words.iter().skip_while(|known| *known != word).nth(1);
    let folder = after("--http").ok_or("--http FOLDER is missing")?;
    let plain = words.iter().any(|word| word == "--plain");
    let options = Options {
        address: after("--listen").ok_or("--listen ADDRESS is missing")?.parse()?,
        what: What::Share {
            paths: vec![PathBuf::from(folder)],
            hidden: false,
            uploads: None,
        },
        certificate: if plain {
            None
        } else {
            Some(Certificate::ours(None, &[])?)
        },
        pin: None,
        names: vec![],
    };
    let server = Server::bind(options, Arc::new(Quiet))?;
    println!("{{\"event\": \"link\", \"link\": \"{}\"}}", server.links().remove(0));
    server.run(&Cancel::new())?;
    Ok(())
}
