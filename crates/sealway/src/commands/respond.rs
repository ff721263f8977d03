//! The lab on two hosts: `sealway lab respond`, and the way to it.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealway_lab::remote::{Event, Link, RemoteError, Token};
use sealway_lab::transports;

use crate::args::{Remote, Respond};
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};
use crate::stop::on_signal;

/// Serves who has the token, until told to stop.
pub(crate) fn run(asked: &Respond) -> Result<Exit, Problem> {
    let given = token(asked.token_file.as_deref())?;
    let failed =
        |doing: &str, error: &dyn std::fmt::Display| Problem::new(Exit::Internal, format!("cannot {doing}: {error}"));
    let program = std::env::current_exe().map_err(|error| failed("find this program", &error))?;
    let listener = TcpListener::bind(asked.listen)
        .map_err(|error| failed(&format!("listen at {}", asked.listen), &error).hint("--listen ADDR:PORT"))?;
    let address = listener.local_addr().map_err(|error| failed("listen", &error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let asked_to = Arc::clone(&stop);
    let first = move || {
        asked_to.store(true, Ordering::Release);
        sealway_lab::peer::hurry();
    };
    on_signal(first, sealway_lab::peer::end_all)?;
    let token = match given {
        Some(token) => {
            output::print(&format!("listening {address}\n"))?;
            token
        }
        None => {
            let made = Token::generate().map_err(|error| Problem::new(Exit::Internal, error))?;
            output::print(&format!("listening {address}\ntoken {}\n", made.reveal()))?;
            made
        }
    };
    transports::respond(&listener, &token, &program, &tell, &|| stop.load(Ordering::Acquire))
        .map_err(|error| problem(&error))?;
    Ok(Exit::Done)
}

fn tell(event: Event) {
    match event {
        Event::Joined(client) => note(format!("serving {client}")),
        Event::Left(client, None) => note(format!("{client} is done")),
        Event::Left(client, Some(error)) => note(format!("{client}: {error}")),
        Event::Busy(client) => note(format!("turned away {client}: another client is served")),
        Event::Stranger(who) => note(format!("refused {who}, which has not the token")),
        _ => {}
    }
}

/// The other host, if one is asked for.
pub(super) fn connect(asked: &Remote) -> Result<Option<Arc<Link>>, Problem> {
    let Some(address) = &asked.remote else { return Ok(None) };
    let Some(token) = token(asked.token_file.as_deref())? else {
        let what = "--remote needs the token that `sealway lab respond` has";
        return Err(Problem::usage(what).hint(format!("--token-file FILE, or the variable {}", Token::VARIABLE)));
    };
    Link::connect(address, &token)
        .map(Some)
        .map_err(|error| problem(&error))
}

fn problem(error: &RemoteError) -> Problem {
    Problem::new(error.ending().into(), error)
}

/// The token of a file, else of the environment.
fn token(file: Option<&Path>) -> Result<Option<Token>, Problem> {
    let wrong = |place: &dyn std::fmt::Display, error| Problem::usage(format!("{place}: {error}"));
    match (file, std::env::var(Token::VARIABLE)) {
        (Some(file), _) => Token::read(file)
            .map(Some)
            .map_err(|error| wrong(&file.display(), error)),
        (None, Ok(text)) if !text.is_empty() => Token::parse(&text)
            .map(Some)
            .map_err(|error| wrong(&Token::VARIABLE, error)),
        _ => Ok(None),
    }
}
