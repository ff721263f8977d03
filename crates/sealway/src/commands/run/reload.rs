//! SIGHUP: the configuration is read again, and taken up if nothing is wrong with it.

use std::sync::Arc;

use sealway_api::Api;
use sealway_proxy::settings::{Metrics, Service, Settings, UsageStore};
use sealway_proxy::{Control, Error};
use sealway_v2ray::config::{self, Config, Severity};

use super::{Failed, Read, api, files, read, tell, unopened};
use crate::args::Run;
use crate::log::ErrorLog;
use crate::systemd::Sockets;

/// What it takes to read the configuration again.
pub(super) struct Again {
    options: Arc<Run>,
    /// It came by standard input, if only in part.
    is_typed: bool,
    /// The configuration of the management API as it was begun.
    begun: Option<config::Api>,
    error_log: Arc<ErrorLog>,
    /// Who is told numbers, and where what users use is kept.
    kept: (Option<Metrics>, Option<UsageStore>),
    sockets: Sockets,
    /// The management API, which stays what it is.
    api: Option<Api>,
}

impl Again {
    pub(super) fn new(
        options: &Run,
        sources: &[files::Source],
        (config, settings): (&Config, &Settings),
        (sockets, error_log): (Sockets, ErrorLog),
        api: Option<Api>,
    ) -> Again {
        Again {
            options: Arc::new(options.clone()),
            is_typed: sources.iter().any(|source| source.name == "stdin:"),
            begun: config.api.clone(),
            error_log: Arc::new(error_log),
            kept: (settings.metrics.clone(), settings.store.clone()),
            sockets,
            api,
        }
    }

    /// Reads the configuration, takes it up, and says in the log what came of it.
    pub(super) async fn take_up(&self, control: &Control) {
        if self.is_typed {
            return refresh(control).await;
        }
        let options = Arc::clone(&self.options);
        // Files are read where that may take its time.
        let read = tokio::task::spawn_blocking(move || read(&options)).await;
        let Read {
            sources,
            config,
            mut settings,
        } = match read {
            Ok(Ok(read)) => read,
            Ok(Err(Failed(_, problem, _))) => {
                return unchanged(problem.message().trim_end_matches("; nothing was started"));
            }
            Err(_) => return unchanged("reading it broke off"),
        };
        let configured = settings.inbounds.len();
        if let Some(api) = &self.api {
            api.wire(&mut settings);
        }
        // Rules may lead to the tag that it will have.
        if let Some(api) = config.api.as_ref().filter(|api| !api.tag.is_empty())
            && !settings.services.iter().any(|service| service.tag == api.tag)
        {
            settings.services.push(Service::nobody(&api.tag));
        }
        let is_kept = (settings.metrics == self.kept.0, settings.store == self.kept.1);
        self.sockets.give_to(&mut settings);
        let (error_log, log) = (Arc::clone(&self.error_log), config.log.clone());
        // So is the log opened there, which nothing goes to if something else is wrong.
        let opened = tokio::task::spawn_blocking(move || error_log.prepare(&log)).await;
        let error_log = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                tell(
                    &sources,
                    self.options.voice,
                    Severity::Error,
                    &[unopened(&config.log, &error)],
                );
                return unchanged("the configuration cannot be used");
            }
            Err(_) => return unchanged("opening the error log broke off"),
        };
        match control.apply(settings).await {
            Ok(done) => {
                // Whoever asked looks for an answer where he is heard.
                let quiet = match error_log.hears_warnings() {
                    true => {
                        self.error_log.take_up(error_log);
                        None
                    }
                    false => Some(error_log),
                };
                let (opened, kept, closed) = (done.opened, done.kept, done.closed);
                tracing::warn!(
                    "SIGHUP: the configuration was taken up: {opened} listeners opened, {kept} kept, {closed} closed"
                );
                let changed = [
                    (
                        "`api` says",
                        !config::Api::is_same(config.api.as_ref(), self.begun.as_ref()),
                    ),
                    ("`metrics` says", !is_kept.0),
                    ("`stats.store` and `stats.node` say", !is_kept.1),
                ];
                for (what, _) in changed.iter().filter(|(_, changed)| *changed) {
                    tracing::warn!("SIGHUP: what {what} changes with a restart only");
                }
                if let Some(quiet) = quiet {
                    self.error_log.take_up(quiet);
                }
            }
            Err(found) => {
                let placed = found.into_iter().map(|error| api::place(error, configured));
                let found: Vec<Error> = placed.collect();
                tell(&sources, self.options.voice, Severity::Error, &found);
                let other = |error: &&Error| !matches!(error, Error::Config { .. } | Error::Listen { .. });
                for error in found.iter().filter(other) {
                    tracing::error!("SIGHUP: {error}");
                }
                unchanged("the configuration cannot be used");
            }
        }
    }
}

/// What came by standard input cannot be read again.
async fn refresh(control: &Control) {
    match control.refresh().await {
        Ok(()) => tracing::warn!(
            "SIGHUP: geo files and certificates were read again; the configuration came by standard input, which cannot be"
        ),
        Err(error) => {
            tracing::error!("SIGHUP: {error}");
            unchanged("a file cannot be used");
        }
    }
}

fn unchanged(why: impl std::fmt::Display) {
    tracing::error!("SIGHUP: nothing was changed: {why}");
}
