//! Where connections come in, and what they speak.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use sealway_v2ray::shadowsocks;
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vless::Flow;
use sealway_v2ray::vless::fallback::Fallback;
use sealway_v2ray::vless::vision::Seed;
use sealway_v2ray::{Address, UserId};

use super::{Account, DomainMatch, FallbackTarget, IpMatch, Override, Packed, ServerTransport, UnixName};

/// Where an inbound listens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Listen {
    /// A port on an address.
    Port(SocketAddr),
    /// A port on every address, IPv4 and IPv6.
    EveryAddress(u16),
    /// A unix socket, with the mode that its file is given. An abstract name has no file.
    Unix(UnixName, Option<u32>),
}

impl Listen {
    /// Whether only this machine reaches it.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Listen::Port(address) => address.ip().to_canonical().is_loopback(),
            Listen::EveryAddress(_) => false,
            Listen::Unix(..) => true,
        }
    }
}

/// An inbound.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// Its name, or empty.
    pub tag: String,
    /// Where it listens: one entry a port.
    pub listen: Vec<Listen>,
    /// What it speaks.
    pub protocol: InboundProtocol,
    /// What it speaks it over.
    pub transport: ServerTransport,
    /// What is looked for in the first bytes; nothing by default.
    pub sniffing: Option<Sniffing>,
}

/// What is looked for in the first bytes of a connection, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sniffing {
    /// Protocols whose names replace targets.
    pub overrides: Vec<Override>,
    /// Names that replace nothing.
    pub domains_excluded: Vec<DomainMatch>,
    /// Addresses that are not replaced.
    pub ips_excluded: Vec<IpMatch>,
    /// Only fake addresses are replaced; bytes are not looked at.
    pub metadata_only: bool,
    /// Names are for rules; what is dialled stays.
    pub route_only: bool,
    /// Ports where servers speak first, from and to.
    pub server_first: Vec<(u16, u16)>,
}

impl Inbound {
    /// Whether others than this machine reach it: by what it speaks, which is for clients elsewhere, or by where it listens.
    /// They may not reach private networks unless a rule allows it.
    pub fn is_remote(&self) -> bool {
        use InboundProtocol::{Shadowsocks, Trojan, Vless, Vmess};
        matches!(self.protocol, Shadowsocks(_) | Trojan(_) | Vless(_) | Vmess(_))
            || self.protocol.capture().is_some()
            || !self.listen.iter().all(Listen::is_this_machine)
    }
}

/// What an inbound speaks.
#[derive(Clone, Debug, PartialEq)]
pub enum InboundProtocol {
    /// Everything goes to one target.
    Dokodemo(Dokodemo),
    /// SOCKS 4, 4a and 5.
    Socks(Socks),
    /// HTTP proxy.
    Http(HttpProxy),
    /// Shadowsocks.
    Shadowsocks(ShadowsocksIn),
    /// Trojan.
    Trojan(TrojanIn),
    /// VLESS.
    Vless(VlessIn),
    /// VMess.
    Vmess(VmessIn),
}

impl InboundProtocol {
    /// Whether the source address of a datagram is that of the client's program, which servers are told of by a hash.
    pub fn shows_programs(&self) -> bool {
        matches!(
            self,
            InboundProtocol::Dokodemo(_) | InboundProtocol::Shadowsocks(_) | InboundProtocol::Socks(_)
        )
    }

    /// How the firewall leads to it what was meant for others, if it takes that.
    pub fn capture(&self) -> Option<Capture> {
        match self {
            InboundProtocol::Dokodemo(dokodemo) => dokodemo.capture,
            _ => None,
        }
    }

    /// Whether it takes streams, and whether it takes datagrams on a socket of its own.
    pub fn networks(&self) -> (bool, bool) {
        match self {
            InboundProtocol::Dokodemo(dokodemo) => (dokodemo.tcp, dokodemo.udp),
            InboundProtocol::Shadowsocks(shadowsocks) => (shadowsocks.tcp, shadowsocks.udp),
            _ => (true, false),
        }
    }
}

/// How the firewall leads connections here that were meant for others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Capture {
    /// It changes their destination (`redirect`), and remembers what that was.
    Redirect,
    /// It leaves their destination as it is (`tproxy`).
    Tproxy,
}

/// A fixed target, or whatever the firewall leads here.
#[derive(Clone, Debug, PartialEq)]
pub struct Dokodemo {
    /// Go to where connections were meant to go. The target below is then for those of which that is not known.
    pub capture: Option<Capture>,
    /// The host; loopback of the listener's family if there is none.
    pub address: Option<Address>,
    /// The port; 0 means the listener's.
    pub port: u16,
    /// Accept streams.
    pub tcp: bool,
    /// Accept datagrams.
    pub udp: bool,
    /// User level.
    pub level: u32,
}

/// A user who is added to an inbound.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Name in counters, rules and the access log. Without one he cannot be removed.
    pub email: String,
    /// Level.
    pub level: u32,
    /// What he is recognised by.
    pub account: NewAccount,
}

/// What a user is recognised by.
#[derive(Clone)]
pub enum NewAccount {
    /// VLESS: secret id, how the payload goes, and how much it is padded.
    Vless(UserId, Flow, Seed),
    /// VMess: secret id.
    Vmess(UserId),
    /// Trojan: what the password becomes on the wire.
    Trojan(Key),
    /// Shadowsocks: the key that the password stands for.
    Shadowsocks(shadowsocks::Key),
    /// Shadowsocks: the password, and the method. `None`: that of the inbound.
    ShadowsocksPassword(Option<shadowsocks::Method>, String),
    /// SOCKS and HTTP: name and password.
    Login(Account),
}

/// Shows how long a password is, and not the password.
impl fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NewAccount::Vless(id, flow, seed) => write!(f, "Vless({id:?}, {flow:?}, {seed:?})"),
            NewAccount::Vmess(id) => write!(f, "Vmess({id:?})"),
            NewAccount::Trojan(key) => write!(f, "Trojan({key:?})"),
            NewAccount::Shadowsocks(key) => write!(f, "Shadowsocks({key:?})"),
            NewAccount::ShadowsocksPassword(method, password) => {
                write!(f, "ShadowsocksPassword({method:?}, {} bytes)", password.len())
            }
            NewAccount::Login(account) => write!(f, "Login({account:?})"),
        }
    }
}

/// SOCKS inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Socks {
    /// Who may use it. Empty: anyone.
    pub accounts: Vec<Account>,
    /// Allow UDP ASSOCIATE.
    pub udp: bool,
    /// Address told to clients for their datagrams; that of the TCP connection if there is none.
    pub udp_address: Option<IpAddr>,
    /// User level.
    pub level: u32,
}

/// HTTP proxy inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpProxy {
    /// Who may use it. Empty: anyone.
    pub accounts: Vec<Account>,
    /// Accept requests without an absolute URI.
    pub allow_transparent: bool,
    /// User level.
    pub level: u32,
}

/// Shadowsocks inbound.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowsocksIn {
    /// Who may use it.
    pub users: ShadowsocksUsers,
    /// Accept streams.
    pub tcp: bool,
    /// Accept datagrams.
    pub udp: bool,
    /// Of the methods of 2017: refuse salts that came before. Those of 2022 always do.
    pub once: bool,
}

/// Who may use a Shadowsocks inbound.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowsocksUsers {
    /// The methods of 2017: users with keys, and perhaps methods, of their own.
    Classic(Vec<ShadowsocksUser>),
    /// A method of 2022: whoever has this key.
    One(ShadowsocksUser),
    /// A method of 2022: the inbound's key, and users with keys of their own behind it.
    Many(shadowsocks::Key, Vec<ShadowsocksUser>),
}

/// A user, by a secret id or by what stands for one.
#[derive(Clone, Debug, PartialEq)]
pub struct User<K = UserId> {
    /// What he is recognised by.
    pub id: K,
    /// Name in counters, rules and the access log, or empty.
    pub email: String,
    /// Level.
    pub level: u32,
}

/// A user of Shadowsocks, by the key that the password stands for.
pub type ShadowsocksUser = User<shadowsocks::Key>;

/// A user of Trojan, by what the password becomes on the wire.
pub type TrojanUser = User<Key>;

/// Trojan inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrojanIn {
    /// Who may use it.
    pub users: Packed<TrojanUser>,
    /// Where everybody else is sent.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

/// A user of VLESS.
#[derive(Clone, Debug, PartialEq)]
pub struct VlessUser {
    /// Who it is.
    pub user: User,
    /// How the payload goes.
    pub flow: Flow,
    /// How much it is padded.
    pub seed: Seed,
}

impl From<VlessUser> for NewUser {
    fn from(vless: VlessUser) -> NewUser {
        NewUser {
            email: vless.user.email,
            level: vless.user.level,
            account: NewAccount::Vless(vless.user.id, vless.flow, vless.seed),
        }
    }
}

impl From<User> for NewUser {
    /// A user of VMess.
    fn from(user: User) -> NewUser {
        NewUser {
            email: user.email,
            level: user.level,
            account: NewAccount::Vmess(user.id),
        }
    }
}

impl From<TrojanUser> for NewUser {
    fn from(user: TrojanUser) -> NewUser {
        NewUser {
            email: user.email,
            level: user.level,
            account: NewAccount::Trojan(user.id),
        }
    }
}

impl From<&ShadowsocksUser> for NewUser {
    fn from(user: &ShadowsocksUser) -> NewUser {
        NewUser {
            email: user.email.clone(),
            level: user.level,
            account: NewAccount::Shadowsocks(user.id.clone()),
        }
    }
}

impl From<User> for VlessUser {
    /// A user without a flow.
    fn from(user: User) -> Self {
        VlessUser {
            user,
            flow: Flow::None,
            seed: Seed::default(),
        }
    }
}

/// VLESS inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VlessIn {
    /// Who may use it.
    pub users: Packed<VlessUser>,
    /// Where everybody else is sent.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

/// VMess inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmessIn {
    /// Who may use it.
    pub users: Packed<User>,
    /// Refuse the words `none` and `zero`.
    pub secure_only: bool,
}
