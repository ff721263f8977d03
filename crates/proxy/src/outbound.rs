//! Where connections go out.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::vless;
use sealway_v2ray::vmess::{self, CommandKey, Options, RequestRandom, Security, Session};
use sealway_v2ray::{Address, Destination, Network, UserId};

use crate::body::{VlessResponse, VmessOpen, VmessSeal};
use crate::clock::unix_time;
use crate::dial;
use crate::guard::{Guard, Named};
use crate::names::Names;
use crate::own::Own;
use crate::settings::{self, FinalRule, Freedom, OutboundProtocol, VmessOut, VmessSecurity};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::ClientSide;
use crate::udp::{Open, PacketEnd, Redirect, Relayed};
use crate::{Error, random};

/// How long connecting and every handshake on the way to a target may take together: a next server that accepts and says
/// nothing must not hold the client for ever.
const REACH: Duration = Duration::from_secs(60);

/// Who wants to go out.
pub(crate) struct Caller {
    /// The client's address.
    pub(crate) source: Option<SocketAddr>,
    /// The address it came to.
    pub(crate) local: Option<SocketAddr>,
    /// It came from outside.
    pub(crate) remote: bool,
    /// Private addresses that it may reach all the same.
    pub(crate) named: Option<Named>,
}

/// An outbound, ready to dial.
pub(crate) struct Outbound {
    pub(crate) tag: String,
    kind: Kind,
    side: ClientSide,
    source: Option<IpAddr>,
    own: Arc<Own>,
    traffic: Traffic,
}

enum Kind {
    Freedom(Freedom, Arc<[FinalRule]>),
    Blackhole { http: bool },
    Vless { server: (Address, u16), id: UserId },
    Vmess(Box<Vmess>),
    Socks(settings::ProxyOut),
    Http(settings::ProxyOut),
}

struct Vmess {
    settings: VmessOut,
    key: CommandKey,
    security: Security,
    options: Options,
}

impl Vmess {
    fn new(settings: VmessOut) -> Self {
        let auto = || match sealway_aead::choose::vmess_auto(sealway_aead::cpu::Cpu::get()) {
            sealway_aead::Suite::Aes128Gcm => Security::Aes128Gcm,
            _ => Security::ChaCha20Poly1305,
        };
        let security = match settings.security {
            VmessSecurity::Auto => auto(),
            VmessSecurity::Aes128Gcm => Security::Aes128Gcm,
            VmessSecurity::ChaCha20Poly1305 => Security::ChaCha20Poly1305,
            VmessSecurity::None | VmessSecurity::Zero => Security::None,
        };
        let mut options = security.usual_options();
        if settings.security == VmessSecurity::Zero {
            options = Options::ZERO;
        } else if settings.authenticated_length && security != Security::None {
            options = options.with(Options::AUTHENTICATED_LENGTH);
        }
        Vmess {
            key: CommandKey::new(&settings.id),
            settings,
            security,
            options,
        }
    }

    /// Keys of one connection. Datagrams need chunks to be told apart, so `zero` becomes `none` for them.
    fn session(&self, network: Network) -> Result<Session, Error> {
        let options = match network {
            Network::Udp => self.options.with(Options::CHUNK_STREAM),
            Network::Tcp => self.options,
        };
        Ok(Session::new(&random::bytes()?, self.security, options, network)?)
    }

    /// The request header.
    fn header(&self, session: &Session, to: &Destination) -> Result<Vec<u8>, Error> {
        let drawn: [u8; 28] = random::bytes()?;
        let mut random = RequestRandom {
            auth: [0; 4],
            nonce: [0; 8],
            padding_len: drawn[27],
            padding: [0; 15],
        };
        random.auth.copy_from_slice(&drawn[..4]);
        random.nonce.copy_from_slice(&drawn[4..12]);
        random.padding.copy_from_slice(&drawn[12..27]);
        let request = vmess::Request {
            session: session.clone(),
            command: vmess::Command::Connect(to.clone()),
        };
        let mut header = Vec::new();
        request.seal(&self.key, unix_time(), &random, &mut header)?;
        Ok(header)
    }
}

/// The other end of a stream.
pub(crate) enum Far {
    /// Carry to here.
    Stream(Box<Stream>),
    /// There is no other end: this is what the client is told, if anything.
    Nowhere(Option<&'static [u8]>),
}

fn redirect(freedom: &Freedom) -> Redirect {
    Redirect {
        host: freedom.redirect_host.clone(),
        port: freedom.redirect_port,
    }
}

/// Answer of a black hole that speaks HTTP.
const FORBIDDEN: &[u8] =
    b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nCache-Control: max-age=3600, public\r\nContent-Length: 0\r\n\r\n";

impl Outbound {
    /// Builds TLS settings and keys.
    pub(crate) fn new(
        place: &str,
        settings: &settings::Outbound,
        names: Arc<Names>,
        own: Arc<Own>,
        traffic: Traffic,
    ) -> Result<Self, Error> {
        let kind = match &settings.protocol {
            OutboundProtocol::Freedom(freedom) => Kind::Freedom(freedom.clone(), freedom.final_rules.clone().into()),
            OutboundProtocol::Blackhole { http } => Kind::Blackhole { http: *http },
            OutboundProtocol::Vless(vless) => {
                if settings.transport.tls.is_none()
                    && vless.server.0.ip().is_none_or(|ip| !crate::guard::is_private(ip))
                {
                    tracing::warn!("{place}: VLESS without TLS sends everything in the clear");
                }
                Kind::Vless {
                    server: vless.server.clone(),
                    id: vless.id,
                }
            }
            OutboundProtocol::Vmess(vmess) => Kind::Vmess(Box::new(Vmess::new(vmess.clone()))),
            OutboundProtocol::Socks(socks) => Kind::Socks(socks.clone()),
            OutboundProtocol::Http(http) => Kind::Http(http.clone()),
        };
        Ok(Outbound {
            tag: settings.tag.clone(),
            kind,
            side: ClientSide::new(place, &settings.transport, settings.send_through, names)?,
            source: settings.send_through,
            own,
            traffic,
        })
    }

    /// True if one association serves all targets of a client.
    pub(crate) fn is_open_to_all(&self) -> bool {
        matches!(self.kind, Kind::Freedom(..) | Kind::Socks(_))
    }

    fn guard(&self, rules: &Arc<[FinalRule]>, caller: &Caller) -> Guard {
        Guard {
            rules: Arc::clone(rules),
            remote: caller.remote,
            named: caller.named.clone(),
        }
    }

    /// Opens a stream to the target, within [`REACH`].
    pub(crate) async fn connect(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let reached = tokio::time::timeout(REACH, self.reach(to, caller)).await;
        reached.map_err(|_| Error::TimedOut("answer of the next server"))?
    }

    async fn reach(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let stream = match &self.kind {
            Kind::Blackhole { http } => return Ok(Far::Nowhere(http.then_some(FORBIDDEN))),
            Kind::Freedom(freedom, rules) => self.direct(freedom, &self.guard(rules, caller), to, caller).await?,
            Kind::Vless { server, id } => self.vless(server, id, to).await?,
            Kind::Vmess(vmess) => self.vmess(vmess, to).await?,
            Kind::Socks(proxy) => {
                let (mut stream, _) = self
                    .side
                    .connect(&proxy.server.0, proxy.server.1, &[], self.traffic.clone())
                    .await?;
                crate::inbound::socks::request(&mut stream, proxy.account.as_ref(), to).await?;
                stream
            }
            Kind::Http(proxy) => {
                let (mut stream, _) = self
                    .side
                    .connect(&proxy.server.0, proxy.server.1, &[], self.traffic.clone())
                    .await?;
                crate::inbound::http::request(&mut stream, proxy, to).await?;
                stream
            }
        };
        Ok(Far::Stream(Box::new(stream)))
    }

    /// Opens an association for datagrams to the target, or, if [`Outbound::is_open_to_all`], to any.
    ///
    /// Within [`REACH`].
    pub(crate) async fn associate(&self, to: &Destination, caller: &Caller) -> Result<PacketEnd, Error> {
        let reached = tokio::time::timeout(REACH, self.reach_datagrams(to, caller)).await;
        reached.map_err(|_| Error::TimedOut("answer of the next server"))?
    }

    async fn reach_datagrams(&self, to: &Destination, caller: &Caller) -> Result<PacketEnd, Error> {
        match &self.kind {
            Kind::Freedom(freedom, rules) => {
                let guard = self.guard(rules, caller);
                let redirect = redirect(freedom);
                let strategy = freedom.domain_strategy;
                let own = Arc::clone(&self.own);
                let traffic = self.traffic.clone();
                let open = Open::bind(self.source, strategy, (guard, own), redirect, &self.side, traffic)?;
                Ok(PacketEnd::Socket(Box::new(open)))
            }
            Kind::Blackhole { .. } => Err(Error::Forbidden {
                target: to.to_string(),
                rule: "a blackhole outbound",
            }),
            Kind::Vless { server, id } => {
                let stream = self.vless(server, id, to).await?;
                Ok(PacketEnd::framed(stream, to.clone(), true))
            }
            Kind::Vmess(vmess) => {
                let stream = self.vmess(vmess, to).await?;
                Ok(PacketEnd::framed(stream, to.clone(), false))
            }
            Kind::Socks(proxy) => self.relayed(proxy).await,
            Kind::Http(_) => Err(Error::Unsupported(
                "datagrams through an http outbound: HTTP proxies carry streams only",
            )),
        }
    }

    /// The port and host that freedom dials.
    async fn direct(
        &self,
        freedom: &Freedom,
        guard: &Guard,
        to: &Destination,
        caller: &Caller,
    ) -> Result<Stream, Error> {
        let elsewhere = redirect(freedom).of(to);
        let to = elsewhere.as_ref().unwrap_or(to);
        let names = self.side.names();
        let addresses = names.resolve(&to.address, to.port, freedom.domain_strategy).await?;
        let mut allowed = Vec::with_capacity(addresses.len());
        let mut refused = None;
        for address in addresses {
            let checked = guard.check(address, Network::Tcp);
            match checked.and_then(|()| self.own.check(address, Network::Tcp)) {
                Ok(()) => allowed.push(address),
                Err(error) => refused = Some(error),
            }
        }
        if let (true, Some(error)) = (allowed.is_empty(), refused) {
            return Err(error);
        }
        let mut sock = dial::connect_any(&allowed, self.side.socket(), self.source).await?;
        if freedom.proxy_protocol > 0 {
            let mut header = crate::proxy_protocol::header(freedom.proxy_protocol, caller.source, caller.local);
            while !header.is_empty() {
                let wrote = poll_fn(|cx| sock.poll_write(cx, &header)).await?;
                header.drain(..wrote);
            }
        }
        Ok(Stream::new(sock, self.traffic.clone()))
    }

    /// Asks a SOCKS server to relay datagrams.
    async fn relayed(&self, proxy: &settings::ProxyOut) -> Result<PacketEnd, Error> {
        let (host, port) = &proxy.server;
        // What passes here is the server's work, not the client's traffic.
        let (mut control, _) = self.side.connect(host, *port, &[], Traffic::default()).await?;
        let (address, port) = crate::inbound::socks::associate(&mut control, proxy.account.as_ref()).await?;
        let server = control.sock.peer();
        let relay = match (address.ip(), server) {
            // "Where you are connected to".
            (Some(ip), Some(server)) if ip.is_unspecified() => SocketAddr::new(server.ip(), port),
            (Some(ip), _) => SocketAddr::new(ip, port),
            (None, _) => {
                let found = self.side.names().resolve(&address, port, Default::default()).await?;
                found.first().copied().ok_or(Error::Resolve {
                    name: address.to_string(),
                })?
            }
        };
        let relayed = Relayed::new(control, relay, self.source, self.traffic.clone()).await?;
        Ok(PacketEnd::Relayed(Box::new(relayed)))
    }

    async fn vless(&self, server: &(Address, u16), id: &UserId, to: &Destination) -> Result<Stream, Error> {
        let request = vless::Request {
            id: *id,
            flow: vless::Flow::None,
            command: vless::Command::Connect(to.clone()),
        };
        let mut header = Vec::new();
        request.encode(&mut header);
        let (mut stream, sent) = self
            .side
            .connect(&server.0, server.1, &header, self.traffic.clone())
            .await?;
        header.drain(..sent);
        stream.set_prefix(header);
        stream.set_opener(Box::new(VlessResponse));
        Ok(stream)
    }

    async fn vmess(&self, vmess: &Vmess, to: &Destination) -> Result<Stream, Error> {
        let session = vmess.session(to.network)?;
        let mut header = vmess.header(&session, to)?;
        let server = &vmess.settings.server;
        let (mut stream, sent) = self
            .side
            .connect(&server.0, server.1, &header, self.traffic.clone())
            .await?;
        header.drain(..sent);
        stream.set_prefix(header);
        if let Some(sealer) = VmessSeal::request(&session, !vmess.settings.no_end, !stream.has_tls())? {
            stream.set_sealer(Box::new(sealer));
        }
        stream.set_opener(Box::new(VmessOpen::response(session)?));
        Ok(stream)
    }
}
