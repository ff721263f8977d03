//! Listeners, and what can be changed about a server while it runs.

mod doors;
mod handlers;
mod routes;
mod running;
mod users;

use std::fmt;
use std::sync::{Arc, Weak};

use crate::check;
use crate::clock::unix_time;
use crate::engine::How;
use crate::engine::plan::Plan;
use crate::error::Error;
use crate::lists::ListSize;
use crate::settings::{Parts, Settings};
use crate::stats::Stats;

pub use routes::{BalancerState, Routed, RuleName};
pub(crate) use running::Running;
pub use users::{OnlineUser, Show, UserName};

/// Why a change of a running server was refused. Nothing was changed then.
///
/// The words are those of the family's management API, which panels look for.
#[derive(Debug)]
pub enum Refusal {
    /// There is an inbound or an outbound with this tag already.
    TagTaken(String),
    /// No inbound has this tag.
    NoHandler(String),
    /// It cannot be said what is meant: a tag is missing or unknown, or no rule fits.
    NoClue,
    /// There is a rule with this name already.
    RuleTaken(String),
    /// A rule without a name cannot be removed.
    EmptyTag,
    /// There is a balancer with this tag already.
    BalancerTaken,
    /// A rule leads to a balancer that there is not.
    NoBalancer(String),
    /// No balancer, or no outbound for it, has the tag.
    NoTag,
    /// There is a user with this e-mail already.
    UserTaken(String),
    /// No user has this e-mail.
    NoUser(String),
    /// A user without an e-mail cannot be removed.
    EmptyEmail,
    /// As many watch what the rules decide as may.
    Busy,
    /// This cannot be done to what it is asked of.
    Unsupported(&'static str),
    /// What was asked for does not work: settings that are wrong, or an address that cannot be listened on.
    Unusable(Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::TagTaken(tag) => write!(f, "existing tag found: {tag}"),
            Refusal::NoHandler(tag) => write!(f, "handler not found: {tag}"),
            Refusal::NoClue => f.write_str("not enough information for making a decision"),
            Refusal::RuleTaken(tag) => write!(f, "duplicate ruleTag {tag}"),
            Refusal::EmptyTag => f.write_str("empty tag name!"),
            Refusal::BalancerTaken => f.write_str("duplicate balancer tag"),
            Refusal::NoBalancer(tag) => write!(f, "balancer {tag} not found"),
            Refusal::NoTag => f.write_str("cannot find tag"),
            Refusal::UserTaken(email) => write!(f, "User {email} already exists."),
            Refusal::NoUser(email) => write!(f, "User {email} not found."),
            Refusal::EmptyEmail => f.write_str("Email must not be empty."),
            Refusal::Busy => f.write_str("too many watch what the rules decide"),
            Refusal::Unsupported(what) => write!(f, "not supported: {what}"),
            Refusal::Unusable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::Unusable(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Unusable(error)
    }
}

/// What a change of the whole configuration did to listeners: the places where inbounds listen, each with all of its sockets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// Listeners that were opened.
    pub opened: usize,
    /// Those that stayed open.
    pub kept: usize,
    /// Those that were closed.
    pub closed: usize,
}

/// A running server, for whoever changes it: from [`Server::control`](crate::Server::control). Cheap to clone. It does not keep
/// the server running.
///
/// A change counts for connections that come after it; those that there are go on with what they began with, but for those of
/// users who are gone. Changes are made
/// one after another, each whole or not at all. Must be used within the tokio runtime of the server.
#[derive(Clone)]
pub struct Control {
    stats: Arc<Stats>,
    running: Weak<Running>,
}

impl Control {
    pub(crate) fn new(stats: &Arc<Stats>, running: &Arc<Running>) -> Control {
        Control {
            stats: Arc::clone(stats),
            running: Arc::downgrade(running),
        }
    }

    fn running(&self) -> Result<Arc<Running>, Refusal> {
        Ok(self.running.upgrade().ok_or_else(running::stopped)?)
    }

    /// The counters.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// What each list of a geo file takes that the configuration names.
    pub fn list_sizes(&self) -> Vec<ListSize> {
        self.running()
            .map(|running| running.engine.list_sizes())
            .unwrap_or_default()
    }

    /// Reads the files that the settings of now name again, as [`Control::apply`] does.
    ///
    /// # Errors
    /// [`Refusal::Unusable`] for the first file that cannot be used. Every older one stays in use then.
    pub async fn refresh(&self) -> Result<(), Refusal> {
        self.running()?.change(How::Strict, |_| Ok(())).await.map(drop)
    }

    /// Puts these settings in the place of those that the server runs by. Files that they name are read again: geo files,
    /// certificates, authorities.
    ///
    /// What is the same stays as it is, with everything that belongs to it: sockets, sessions that clients may resume, memories
    /// against replays, kept connections, answers of DNS, measurements. A listener that is new opens before one that is gone
    /// closes. Datagrams that come to a socket of an inbound that has changed begin associations anew.
    ///
    /// What is carried for a user ends if he is gone from his inbound: it has him no more with this protocol, e-mail and
    /// credentials. So it does for users whom [`Control::add_user`] has added to an inbound that is made anew, because its settings
    /// or those of levels have changed, and that does not have them in these settings. Where a whole inbound is gone, what came in
    /// by it goes on.
    ///
    /// # Errors
    /// All that is wrong: [`Error::Config`], and [`Error::Listen`] for an address that cannot be bound. Nothing is changed then.
    pub async fn apply(&self, settings: Settings) -> Result<Changes, Vec<Error>> {
        let one = |refusal| match refusal {
            Refusal::Unusable(error) => vec![error],
            _ => vec![running::stopped()],
        };
        let running = self.running().map_err(one)?;
        let settings = Arc::new(settings);
        let looked = Arc::clone(&settings);
        // Files are read where that may take its time.
        let found = tokio::task::spawn_blocking(move || Parts::from(&*looked).problems()).await;
        let applied = match found {
            Ok(found) if found.is_empty() => {
                let plan = Plan::of(Settings::clone(&settings));
                let change = |now: &mut Plan| {
                    *now = plan;
                    Ok(())
                };
                running.change(How::Strict, change).await.map_err(one)
            }
            Ok(found) => Err(found),
            Err(_) => Err(vec![running::stopped()]),
        };
        self.stats.meters().reloaded(applied.is_ok(), unix_time());
        let Err(found) = applied else { return applied };
        if !matches!(found.first(), Some(Error::Config { .. })) {
            return Err(found);
        }
        // Where something is wrong, everything is said at once.
        let all = tokio::task::spawn_blocking(move || check::whole(&settings).err());
        Err(all.await.ok().flatten().unwrap_or(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_words_that_panels_look_for() {
        let name = || "NAME".to_owned();
        for (refusal, words) in [
            (Refusal::TagTaken(name()), "existing tag found: NAME"),
            (Refusal::NoHandler(name()), "handler not found: NAME"),
            (Refusal::NoClue, "not enough information for making a decision"),
            (Refusal::RuleTaken(name()), "duplicate ruleTag NAME"),
            (Refusal::NoBalancer(name()), "balancer NAME not found"),
            (Refusal::UserTaken(name()), "User NAME already exists."),
            (Refusal::NoUser(name()), "User NAME not found."),
            (Refusal::EmptyEmail, "Email must not be empty."),
        ] {
            assert_eq!(refusal.to_string(), words);
        }
    }
}
