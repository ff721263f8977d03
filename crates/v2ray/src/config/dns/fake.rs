//! `fakedns`: pools of addresses that stand for names.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::config::context::{Cx, quoted};
use crate::config::schema::Kind;
use crate::config::table::{Decode, FromKeys, object};
use crate::json::{Data, Value};
use crate::problem::{At, Position};

/// Names in each of the two usual pools.
const USUAL_SIZE: u32 = 32_768;
/// Names in a pool whose size is not written.
const SIZE: u32 = 65_535;

object! {
    /// A pool of addresses that stand for names.
    pub(crate) struct FakePoolSettings: "fakedns" {
        /// The network that the addresses are of.
        ip_pool: At<String> = "ipPool", default "\"198.18.0.0/15\"";
        /// How many names are remembered. It must be smaller than the network.
        pool_size: Option<At<u32>> = "poolSize";
    }
}

/// A pool of addresses that stand for names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FakePool {
    /// The network that the addresses are of.
    pub net: IpNet,
    /// How many names are remembered.
    pub size: u32,
}

impl FakePool {
    /// The pools where none are written: 198.18.0.0/15 and fc00::/18.
    pub fn usual() -> Vec<FakePool> {
        let v4 = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
        let v6 = Ipv6Net::new_assert(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 18);
        let pool = |net| FakePool { net, size: USUAL_SIZE };
        vec![pool(IpNet::V4(v4)), pool(IpNet::V6(v6))]
    }
}

impl FromKeys for FakePool {
    type Keys = FakePoolSettings;

    fn from_keys(s: FakePoolSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let Ok(net) = s.ip_pool.parse::<IpNet>() else {
            let text = format!("{} is no network", quoted(&s.ip_pool));
            cx.error_in("ipPool", s.ip_pool.at, text, "write 198.18.0.0/15 or fc00::/18");
            return None;
        };
        let bits = u32::from(net.max_prefix_len() - net.prefix_len());
        let room = 1u64.checked_shl(bits).unwrap_or(u64::MAX);
        let size = match s.pool_size {
            None => u32::try_from(room - 1).unwrap_or(SIZE).min(SIZE),
            Some(size) => size.value,
        };
        if size == 0 || u64::from(size) >= room {
            let at = s.pool_size.map_or(s.ip_pool.at, |size| size.at);
            let text = format!("a pool of {size} names does not fit {net}, which has {room} addresses");
            cx.error_in(
                "poolSize",
                at,
                text,
                "it must be at least 1 and smaller than the network",
            );
            return None;
        }
        Some(FakePool { net: net.trunc(), size })
    }
}

/// The pools, written as one object or as a list of them. At most one of each family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FakeDns(pub(crate) Vec<FakePool>);

impl Decode for FakeDns {
    fn kind() -> Kind {
        FakePool::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let pools = match &value.data {
            Data::Array(_) => Vec::<FakePool>::decode(value, cx)?,
            Data::Object(members) if members.is_empty() => Vec::new(),
            _ => vec![FakePool::decode(value, cx)?],
        };
        for (i, pool) in pools.iter().enumerate() {
            let same = |other: &FakePool| other.net.addr().is_ipv4() == pool.net.addr().is_ipv4();
            if pools[..i].iter().any(same) {
                let text = format!("{} is the second pool of its family", pool.net);
                cx.error(at, text, "write one pool for IPv4 and one for IPv6");
                return None;
            }
        }
        Some(FakeDns(pools))
    }
}
