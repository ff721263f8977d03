//! Sets of IP addresses.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

/// A set of IP addresses. IPv4 addresses inside IPv6 ones (`::ffff:192.0.2.1`) are IPv4 addresses to it.
///
/// Takes 8 bytes for each range of IPv4 addresses, 32 for each of IPv6, and up to 4 more for the index.
#[derive(Debug, Default)]
pub struct IpSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl IpSet {
    /// An empty set to fill.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether the set holds an address.
    pub fn matches(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => self.v4.contains(ip.to_bits()),
            IpAddr::V6(ip) => self.v6.contains(ip.to_bits()),
        }
    }

    /// Whether the set holds any address of the family of this one.
    pub fn has_family_of(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(_) => !self.v4.bounds.is_empty(),
            IpAddr::V6(_) => !self.v6.bounds.is_empty(),
        }
    }

    /// How many ranges it holds, neighbours counted as one.
    pub fn len(&self) -> usize {
        self.v4.bounds.len() + self.v6.bounds.len()
    }

    /// Whether it holds no address.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.v4.memory() + self.v6.memory()
    }
}

/// Fills an [`IpSet`].
#[derive(Debug, Default)]
pub struct Builder {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Builder {
    /// All addresses of a network.
    pub fn net(&mut self, net: IpNet) -> &mut Self {
        match canonical(net) {
            IpNet::V4(net) => self.v4.push((net.network().to_bits(), net.broadcast().to_bits())),
            IpNet::V6(net) => self.v6.push((net.network().to_bits(), net.broadcast().to_bits())),
        }
        self
    }

    /// The set.
    pub fn build(self) -> IpSet {
        IpSet {
            v4: Ranges::new(self.v4),
            v6: Ranges::new(self.v6),
        }
    }
}

/// `::ffff:192.0.2.0/120` is `192.0.2.0/24`.
pub fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let inside = v6.addr().to_ipv4_mapped().filter(|_| v6.prefix_len() >= 96);
    let v4 = inside.and_then(|ip| Ipv4Net::new(ip, v6.prefix_len() - 96).ok());
    v4.map_or(net, IpNet::V4)
}

/// Most entries of an index, as a power of two.
const INDEX_BITS: u32 = 16;

/// An address as a number.
trait Number: Copy + Ord {
    fn next(self) -> Option<Self>;
    /// `self - from` without its lowest bits. `self` is not below `from`.
    fn bucket(self, from: Self, shift: u32) -> usize;
    /// How many bits it takes to write `self - from`.
    fn width_above(self, from: Self) -> u32;
}

macro_rules! number {
    ($t:ty) => {
        impl Number for $t {
            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
            fn bucket(self, from: Self, shift: u32) -> usize {
                self.wrapping_sub(from).checked_shr(shift).unwrap_or(0) as usize
            }
            fn width_above(self, from: Self) -> u32 {
                <$t>::BITS - self.wrapping_sub(from).leading_zeros()
            }
        }
    };
}
number!(u32);
number!(u128);

/// Ranges in order, none of which touches the next.
#[derive(Debug)]
struct Ranges<T> {
    /// First and last address of each.
    bounds: Box<[(T, T)]>,
    /// The highest bits of an address, counted from the first range, lead to the first range that does not end before all
    /// addresses with these bits. The last entry is the number of ranges.
    index: Box<[u32]>,
    shift: u32,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Ranges {
            bounds: Box::default(),
            index: Box::default(),
            shift: 0,
        }
    }
}

impl<T: Number> Ranges<T> {
    fn new(mut all: Vec<(T, T)>) -> Self {
        all.sort_unstable();
        let mut bounds: Vec<(T, T)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match bounds.last_mut() {
                Some(before) if before.1.next().is_none_or(|next| first <= next) => before.1 = before.1.max(last),
                _ => bounds.push((first, last)),
            }
        }
        bounds.shrink_to_fit();
        let mut ranges = Ranges {
            bounds: bounds.into(),
            ..Ranges::default()
        };
        ranges.make_index();
        ranges
    }

    /// One entry for each range, so that the index costs no more than the ranges do.
    fn make_index(&mut self) {
        let (Some(&(from, _)), Some(&(_, to))) = (self.bounds.first(), self.bounds.last()) else {
            return;
        };
        let bits = self.bounds.len().ilog2().min(INDEX_BITS);
        self.shift = to.width_above(from).saturating_sub(bits);
        let entries = to.bucket(from, self.shift) + 1;
        let mut index = vec![0u32; entries + 1];
        let mut at = 0;
        for (bucket, entry) in index.iter_mut().take(entries).enumerate() {
            while self.bounds[at].1.bucket(from, self.shift) < bucket {
                at += 1;
            }
            *entry = at as u32;
        }
        index[entries] = self.bounds.len() as u32;
        self.index = index.into();
    }

    fn contains(&self, number: T) -> bool {
        let Some(&(from, _)) = self.bounds.first() else {
            return false;
        };
        if number < from {
            return false;
        }
        let bucket = number.bucket(from, self.shift);
        let Some(&low) = self.index.get(bucket).filter(|_| bucket + 1 < self.index.len()) else {
            return false;
        };
        // A range that reaches into the next bucket is the first of that one.
        let high = (self.index[bucket + 1] as usize + 1).min(self.bounds.len());
        let here = &self.bounds[low as usize..high];
        let at = here.partition_point(|(_, last)| *last < number);
        here.get(at).is_some_and(|(first, _)| *first <= number)
    }

    fn memory(&self) -> usize {
        self.bounds.len() * size_of::<(T, T)>() + self.index.len() * size_of::<u32>()
    }
}
