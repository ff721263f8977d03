//! The client's side of REALITY.
//!
//! The hello is that of a browser, and says in its session id who the client is. Whoever has the server's key answers with a
//! certificate that was made for this client; whoever has not, the site whose name was asked for, answers with its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rustls::SignatureScheme;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use sealway_tls::client::{Client, Hello, Judge, Shown};
use sealway_tls::reality::AuthKey;
use sealway_tls::reality::proof::Proof;
use sealway_tls::reality::session_id::{self, Claim};
use sealway_tls::records::Records;
use sealway_tls::schedule::KeyLog;
use sealway_tls::{Alert, template};
use sealway_v2ray::Address;
use webpki::EndEntityCert;

use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::closing::LINGER;
use crate::error::{Answered, Error};
use crate::random;
use crate::settings::ClientReality;
use crate::stats::Traffic;
use crate::tls::build;
use crate::tls::handshake::{Agreed, Established, Wire};
use crate::tls::provider::provider;

/// The version that servers are told: of Xray, for they compare it with one of Xray. Servers since then want the hybrid group first.
const VERSION: [u8; 3] = [26, 9, 8];
/// Ed25519 (RFC 8446 section 4.2.3), which browsers do not offer and servers of REALITY sign with.
const ED25519: u16 = 0x0807;

/// Seconds between two visits to the site, whatever the number of connections that it answered.
const VISITS: u64 = 60;

/// An outbound's REALITY.
pub(crate) struct RealityClient {
    settings: ClientReality,
    /// Judges the site's own certificate.
    usual: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    log: Option<Arc<dyn KeyLog>>,
    clock: Clock,
    /// When the site was visited last, Unix time. 0: never.
    visited: AtomicI64,
}

/// Who has answered.
pub(crate) enum Answer {
    /// The server.
    Server(Box<Established>),
    /// The site whose name was asked for, over a connection as good as that of any visitor.
    Site {
        established: Box<Established>,
        /// The host to ask it for, and the path.
        host: String,
        path: String,
        error: Error,
    },
}

/// What is known of who answered.
enum Verdict {
    Server([u8; 32]),
    Site,
}

struct Evidence {
    key: AuthKey,
    mldsa65: Option<Box<[u8; 1952]>>,
    name: ServerName<'static>,
    usual: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    verdict: Option<Verdict>,
    /// Why the handshake was ended, in our words.
    answered: Option<Answered>,
}

impl Judge for Evidence {
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), sealway_tls::Error> {
        // What a browser says to any chain that it does not accept.
        let refused = |why: &str| sealway_tls::Error::Certificate {
            alert: Alert::CertificateUnknown,
            why: why.to_owned(),
        };
        match Proof::of(&self.key, shown, self.mldsa65.as_deref()) {
            Proof::Genuine(public) => {
                self.verdict = Some(Verdict::Server(public));
                return Ok(());
            }
            Proof::Unsigned => {
                self.answered = Some(Answered::Unsigned);
                return Err(refused("not signed with the ML-DSA-65 key"));
            }
            Proof::Other => {}
        }
        let chain: Vec<CertificateDer<'_>> = shown.chain.iter().map(|der| CertificateDer::from(*der)).collect();
        let (own, others) = chain.split_first().ok_or_else(|| refused("none"))?;
        let judged = self
            .usual
            .verify_server_cert(own, others, &self.name, &[], UnixTime::now());
        if let Err(error) = judged {
            let why = error.to_string();
            self.answered = Some(Answered::Nobody { why: why.clone() });
            return Err(refused(&why));
        }
        self.verdict = Some(Verdict::Site);
        Ok(())
    }

    fn signature(
        &mut self,
        certificate: &[u8],
        scheme: u16,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), sealway_tls::Error> {
        let valid = match self.verdict {
            Some(Verdict::Server(public)) => scheme == ED25519 && Proof::signed(&public, message, signature),
            _ => {
                let certificate = CertificateDer::from(certificate);
                let mapping = self.provider.signature_verification_algorithms.mapping;
                let scheme = SignatureScheme::from(scheme);
                let known = mapping.iter().find(|(known, _)| *known == scheme);
                // The first is the one of the scheme's own curve; TLS 1.3 allows no other.
                let algorithm = known.and_then(|(_, algorithms)| algorithms.first());
                EndEntityCert::try_from(&certificate).is_ok_and(|certificate| {
                    algorithm.is_some_and(|one| certificate.verify_signature(*one, message, signature).is_ok())
                })
            }
        };
        let wrong = sealway_tls::Error::peer(Alert::DecryptError, "the signature of the handshake is wrong");
        valid.then_some(()).ok_or(wrong)
    }

    fn takes(&self, scheme: u16) -> bool {
        scheme == ED25519 && matches!(self.verdict, Some(Verdict::Server(_)))
    }
}

impl RealityClient {
    /// Opens the key log, and reads the system's authorities.
    pub(crate) fn new(place: &str, settings: &ClientReality, clock: Clock) -> Result<Self, Error> {
        let place = format!("{place}.realitySettings");
        let provider = provider(&place, &[], &[])?;
        let usual = build::system_verifier(&place, &provider)?;
        Ok(RealityClient {
            settings: settings.clone(),
            usual,
            provider,
            log: build::own_key_log(&place, &settings.key_log)?,
            clock,
            visited: AtomicI64::new(0),
        })
    }

    /// Whether the site may be visited now. The next time that is [`VISITS`] seconds later.
    pub(crate) fn may_visit(&self) -> bool {
        let now = (self.clock)();
        let due = |last: i64| (now.abs_diff(last) >= VISITS).then_some(now);
        self.visited
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, due)
            .is_ok()
    }

    /// The name that is asked for, if one is set.
    pub(crate) fn server_name(&self) -> &str {
        &self.settings.server_name
    }

    /// The hello, with its session id sealed, and what the answer is judged by.
    fn begin(&self, host: &Address, draw: &mut dyn FnMut(&mut [u8])) -> Result<(Hello, Evidence), Error> {
        let name = match self.settings.server_name.as_str() {
            "" => host.to_string(),
            name => name.to_owned(),
        };
        let name = build::server_name("realitySettings.serverName", &name)?;
        let told = match &name {
            ServerName::DnsName(name) => Some(name.as_ref()),
            _ => None,
        };
        let protocols = self.settings.fingerprint != "randomizednoalpn";
        let mut hello = template::chrome(told, protocols, draw)?;
        let own = hello
            .x25519()
            .ok_or(sealway_tls::Error::Given("a hello without X25519"))?;
        let key = AuthKey::new(own, &self.settings.public_key, hello.random())?;
        let claim = Claim {
            version: VERSION,
            // It ends in 2106.
            time: (self.clock)() as u32,
            short_id: self.settings.short_id,
        };
        hello.seal_session_id(|message| session_id::seal(&key, &claim, message))?;
        let evidence = Evidence {
            key,
            mldsa65: self.settings.mldsa65_verify.clone(),
            name,
            usual: Arc::clone(&self.usual),
            provider: Arc::clone(&self.provider),
            verdict: None,
            answered: None,
        };
        Ok((hello, evidence))
    }

    /// Shakes hands on a connection that we dialled.
    pub(crate) async fn connect(
        &self,
        host: &Address,
        carrier: impl Into<Carrier>,
        traffic: &Traffic,
    ) -> Result<Answer, Error> {
        let failed = AtomicBool::new(false);
        let mut draw = |out: &mut [u8]| {
            failed.fetch_or(random::fill(out).is_err(), Ordering::Relaxed);
        };
        let drawn = || match failed.load(Ordering::Relaxed) {
            true => Err(Error::Io(std::io::Error::other("no random numbers"))),
            false => Ok(()),
        };
        let begun = self.begin(host, &mut draw);
        drawn()?;
        let (hello, evidence) = begun?;
        let name = evidence.name.to_str().into_owned();
        let mut client = Client::start(hello, evidence, self.log.clone())?;
        let mut carrier = carrier.into();
        let mut wire = Wire::new(&mut carrier, traffic);
        wire.out = client.take_output();
        wire.write().await?;
        while !client.is_done() {
            match wire.read().await {
                Err(error) if matches!(error, Error::Closed) || error.is_reset() => {
                    let answered = Answered::Silent;
                    return Err(Error::NotReality { name, answered });
                }
                read => read?,
            }
            let filled = wire.filled;
            let taken = client.receive(&mut wire.input[..filled], &mut draw);
            drawn()?;
            wire.out = client.take_output();
            match taken {
                Ok(taken) => {
                    wire.discard(taken);
                    wire.write().await?;
                }
                Err(error) => {
                    let leaving = async {
                        wire.write().await?;
                        wire.carrier.leave().await;
                        Ok::<(), Error>(())
                    };
                    let _ = tokio::time::timeout(LINGER, leaving).await;
                    let again = client.was_asked_again();
                    let answered = match (client.into_judge().answered, error.alert()) {
                        _ if again => Answered::Again,
                        (Some(answered), _) => answered,
                        (None, Some(Alert::ProtocolVersion)) => Answered::Older,
                        (None, _) => Answered::Failed { why: error.to_string() },
                    };
                    return Err(Error::NotReality { name, answered });
                }
            }
        }
        let received = wire.input[..wire.filled].to_vec();
        let answered = match client.was_asked_again() {
            true => Answered::Again,
            false => Answered::Site,
        };
        let done = client.finish().ok_or(Error::Closed)?;
        let verdict = done.judge.verdict.ok_or(Error::Closed)?;
        let records = Records::after(done.secrets.client, done.secrets.server, true)?;
        let established = Box::new(Established {
            carrier,
            records,
            received,
            early: Vec::new(),
            closed: false,
            agreed: Agreed {
                sni: String::new(),
                alpn: String::from_utf8_lossy(&done.alpn.unwrap_or_default()).into_owned(),
            },
        });
        if let Verdict::Server(_) = verdict {
            return Ok(Answer::Server(established));
        }
        Ok(Answer::Site {
            established,
            host: name.clone(),
            path: site_path(&self.settings.spider_x),
            error: Error::NotReality { name, answered },
        })
    }
}

/// The path to ask the site for, without what other programs are told in it.
fn site_path(spider_x: &str) -> String {
    let Some((path, query)) = spider_x.split_once('?') else {
        return spider_x.to_owned();
    };
    let told = ["p", "c", "t", "i", "r"];
    let kept = query
        .split('&')
        .filter(|pair| !told.contains(&pair.split('=').next().unwrap_or_default()));
    match kept.collect::<Vec<_>>().join("&") {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests;
