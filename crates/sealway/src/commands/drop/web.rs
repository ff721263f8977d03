//! `sealway share --http` and `sealway receive --http`.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use indicatif::HumanBytes;
use sealway_drop::address::{self, reachable};
use sealway_drop::identity::config_dir;
use sealway_drop::names::Escaped;
use sealway_drop_transfer::dest::{self, Conflict, Flush};
use sealway_drop_transfer::taking::Taking;
use sealway_drop_web::certificate::Certificate;
use sealway_drop_web::qr;
use sealway_drop_web::secret::Secret;
use sealway_drop_web::server::{Options, Server, Uploads, What};
use sealway_drop_web::telling::{Download, Telling, Upload};
use serde_json::json;

use super::events::Events;
use super::guard::pin;
use super::{receive, screen, stop_on_signal_saying};
use crate::args::{DropLink, Guard, Receive, Share, Web};
use crate::exit::Exit;
use crate::problem::{Problem, note};
use crate::signals::take_every_descriptor;

pub(crate) fn share(options: &Share) -> Result<Exit, Problem> {
    let uploads = options.allow_upload.then(|| Uploads {
        max_size: options.web.max_size,
        hidden: options.changing.hidden,
        dest: into_folder(Conflict::Rename, options.changing.hidden, false),
    });
    let what = What::Share {
        paths: options.paths.clone(),
        hidden: options.changing.hidden,
        uploads,
    };
    run(&options.web, &options.guard, &options.link, what)
}

pub(crate) fn receive(options: &Receive, conflict: Option<Conflict>) -> Result<Exit, Problem> {
    // Whoever sends is not asked, and nobody here sits by.
    let taking = Taking::new(true, conflict, false)?;
    let folder = options.folder.as_ref().unwrap_or(&options.output);
    if !folder.exists() {
        let cancel = sealway_drop::cancel::Cancel::new();
        receive::make(folder, options.create, std::io::stdin().is_terminal(), &cancel)?;
    }
    let uploads = Uploads {
        max_size: options.web.max_size,
        hidden: options.hidden,
        dest: into_folder(taking.conflict, options.hidden, options.fsync),
    };
    let what = What::Receive {
        folder: folder.clone(),
        uploads,
    };
    run(&options.web, &options.guard, &options.link, what)
}

fn into_folder(conflict: Conflict, hidden: bool, fsync: bool) -> dest::Options {
    dest::Options {
        conflict,
        hidden_in_home: hidden,
        fsync,
        // To bring the whole file system to the disk after every file would be a burden to all who use it.
        flush: Flush::None,
        ..dest::Options::default()
    }
}

fn run(web: &Web, guard: &Guard, link: &DropLink, what: What) -> Result<Exit, Problem> {
    let events = Events::of(link);
    let sends = matches!(what, What::Receive { .. });
    let is_folder =
        matches!(&what, What::Share { paths, .. } if paths.len() > 1 || paths.iter().any(|path| path.is_dir()));
    let addresses = match &link.listen {
        None => vec![(Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::UNSPECIFIED, 0).into()],
        Some(text) => address::resolve(text).map_err(|error| {
            Problem::usage(format!("--listen {text}: {error}")).hint("give HOST:PORT, such as [::]:8443")
        })?,
    };
    let pin = pin(guard)?.map(|(pin, _)| pin);
    take_every_descriptor();
    let cancel = stop_on_signal_saying("\nstopping; a second signal ends everything at once")?;
    let teller: Arc<dyn Telling> = Arc::new(Teller { events });
    let mut failed = None;
    let mut bound = None;
    for address in addresses {
        let certificate = certificate(web)?;
        let shown = certificate
            .as_ref()
            .map(|certificate| (certificate.fingerprint(), certificate.pin()));
        let options = Options {
            address,
            what: what.clone(),
            certificate,
            pin: pin.as_ref().map(|pin| Secret::given(pin.to_string())),
            names: web.host.clone(),
        };
        match Server::bind(options, Arc::clone(&teller)) {
            Ok(server) => {
                bound = Some((server, shown));
                break;
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let Some((server, shown)) = bound else {
        let error = failed.map_or_else(|| Problem::usage("the name has no address"), Problem::from);
        return Err(error);
    };
    let links = server.links();
    let (fingerprint, pinned) = shown.map_or((None, None), |(fingerprint, pin)| (Some(fingerprint), pin));
    let told = Told {
        links: &links,
        fingerprint: fingerprint.as_deref(),
        pinned: pinned.as_deref(),
        pin: pin.as_ref().map(|pin| pin.as_str()),
        own: web.cert.is_none(),
        sends,
        is_folder,
    };
    told.tell(events);
    server.run(&cancel)?;
    Ok(Exit::Done)
}

fn certificate(web: &Web) -> Result<Option<Certificate>, Problem> {
    if web.plain {
        return Ok(None);
    }
    let certificate = match (&web.cert, &web.key) {
        (Some(certificate), Some(key)) => Certificate::given(certificate, key),
        _ => {
            let here: Vec<IpAddr> = reachable(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
                .iter()
                .map(SocketAddr::ip)
                .collect();
            Certificate::ours(config_dir().as_deref(), &here)
        }
    };
    Ok(Some(certificate.map_err(sealway_drop::Error::from)?))
}

/// What whoever runs this passes on.
struct Told<'a> {
    links: &'a [String],
    fingerprint: Option<&'a str>,
    pinned: Option<&'a str>,
    pin: Option<&'a str>,
    /// Whether the certificate is one that no browser knows.
    own: bool,
    sends: bool,
    is_folder: bool,
}

impl Told<'_> {
    /// Like a code it goes to standard error even where little is said, or nobody could use it.
    fn tell(&self, events: Events) {
        let link = self.links.first().map(String::as_str).unwrap_or_default();
        if events.json {
            events.tell("", || {
                json!({"event": "link", "link": link, "others": self.links.get(1..), "fingerprint": self.fingerprint,
                    "public_key": self.pinned, "pin": self.pin, "curl": self.curl(link)})
            });
            return;
        }
        note(format_args!(
            "open this in a browser, or point a phone's camera at the code:\n  {link}"
        ));
        if let Some(others) = self.links.get(1..).filter(|others| !others.is_empty()) {
            note(format_args!("  (also {})", others.join(", ")));
        }
        if std::io::stderr().is_terminal()
            && let Some(code) = qr::draw(link, screen::columns())
        {
            note(format_args!("\n{code}"));
        }
        if let Some(pin) = self.pin {
            note(format_args!("PIN: {pin}"));
        }
        match self.fingerprint {
            Some(fingerprint) if self.own => note(format_args!(
                "the browser warns that it does not know this machine; compare the certificate's SHA-256 before you go on:\n  {fingerprint}"
            )),
            Some(_) => {}
            None => note(
                "warning: without TLS anyone on the network can read everything, the link and a PIN included, and change it",
            ),
        }
        note(format_args!(
            "with curl, which checks the key by itself:\n  {}",
            self.curl(link)
        ));
        note("whoever has the link gets in; Ctrl-C ends it");
    }

    /// A line for curl that speaks to this machine and to no other: with the pin, what curl thinks of the certificate does not matter.
    fn curl(&self, link: &str) -> String {
        let trust = match self.pinned.filter(|_| self.own) {
            Some(pinned) => format!(" -k --pinnedpubkey '{pinned}'"),
            None => String::new(),
        };
        let pin = if self.pin.is_some() { " -u :PIN" } else { "" };
        match (self.sends, self.is_folder) {
            (true, _) => format!("curl{trust}{pin} -T FILE '{link}'"),
            (false, true) => format!("curl{trust}{pin} -OJ '{link}?zip'"),
            (false, false) => format!("curl{trust}{pin} -OJ '{link}FILE'"),
        }
    }
}

/// Says what happens.
struct Teller {
    events: Events,
}

fn text(bytes: &[u8]) -> String {
    Escaped(bytes).to_string()
}

impl Telling for Teller {
    fn sent(&self, download: &Download) {
        let Download {
            path,
            client,
            wanted,
            sent,
        } = download;
        let whole = sent == wanted;
        let part = if whole {
            String::new()
        } else {
            format!(" of {}, and broke off", HumanBytes(*wanted))
        };
        self.events.tell(
            format_args!("{client} took {}: {}{part}", Escaped(path), HumanBytes(*sent)),
            || json!({"event": "sent", "path": text(path), "client": client.to_string(), "bytes": sent, "whole": whole}),
        );
    }

    fn received(&self, upload: &Upload) {
        let Upload { path, client, bytes } = upload;
        self.events.tell(
            format_args!("{client} sent {}: {}", Escaped(path), HumanBytes(*bytes)),
            || json!({"event": "received", "path": text(path), "client": client.to_string(), "bytes": bytes}),
        );
    }

    fn not_received(&self, path: &[u8], client: IpAddr, why: &str) {
        self.events.tell(
            format_args!("{client} could not send {}: {why}", Escaped(path)),
            || json!({"event": "refused", "path": text(path), "client": client.to_string(), "why": why}),
        );
    }

    fn locked(&self) {
        self.events.tell(
            "warning: the PIN was wrong 100 times; nobody gets in by it any more until this is started again",
            || json!({"event": "locked"}),
        );
    }

    fn stopping(&self, seconds: u64) {
        self.events.tell(
            format_args!("what is under way has {seconds} seconds"),
            || json!({"event": "stopping", "seconds": seconds}),
        );
    }
}
