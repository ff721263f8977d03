//! How many streams share a connection, and when a connection is not used for new ones any more.

use super::span::Span;

/// What the user allows. A number of 0 is no limit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Xmux {
    /// Streams at a time on one connection.
    pub max_concurrency: Span,
    /// Connections at a time; as many are opened before one is shared.
    pub max_connections: Span,
    /// Streams on one connection in all.
    pub reuse_times: Span,
    /// Requests on one connection in all.
    pub request_times: Span,
    /// Age of a connection up to which it takes new streams, seconds.
    pub reusable_secs: Span,
    /// Time between pings, seconds. 0: the usual one of the version of HTTP; negative: none.
    pub keep_alive_secs: i64,
}

impl Default for Xmux {
    fn default() -> Self {
        Xmux {
            max_concurrency: Span::default(),
            max_connections: Span::just(3),
            reuse_times: Span::default(),
            request_times: Span::new(600, 900),
            reusable_secs: Span::new(1800, 3000),
            keep_alive_secs: 0,
        }
    }
}

/// What a connection may still be used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    concurrency: Option<u32>,
    streams: Option<u32>,
    requests: Option<u32>,
    until: Option<u64>,
}

impl Xmux {
    /// What a connection that begins now may be used for. `now` is in seconds of any clock that does not go back, `random`
    /// four random numbers.
    pub fn budget(&self, now: u64, random: [u32; 4]) -> Budget {
        let drawn = |span: Span, random| (!span.is_zero()).then(|| span.pick(random).max(1));
        Budget {
            concurrency: drawn(self.max_concurrency, random[0]),
            streams: drawn(self.reuse_times, random[1]),
            requests: drawn(self.request_times, random[2]),
            until: drawn(self.reusable_secs, random[3]).map(|secs| now.saturating_add(secs.into())),
        }
    }

    /// Whether another connection is to be opened when there are this many already. `random`: 32 random bits.
    pub fn wants_more(&self, connections: usize, random: u32) -> bool {
        let most = self.max_connections.pick(random);
        !self.max_connections.is_zero() && connections < most as usize
    }
}

impl Budget {
    /// Whether a new stream may begin, now or later.
    pub fn is_usable(&self, now: u64) -> bool {
        self.streams != Some(0) && self.requests != Some(0) && self.until.is_none_or(|until| now < until)
    }

    /// Whether a stream that is there may make another request.
    pub fn has_requests(&self, now: u64) -> bool {
        self.requests != Some(0) && self.until.is_none_or(|until| now < until)
    }

    /// Whether a new stream may begin while `open` others are there.
    pub fn has_room(&self, now: u64, open: usize) -> bool {
        self.is_usable(now) && self.concurrency.is_none_or(|most| open < most as usize)
    }

    /// A stream begins.
    pub fn take_stream(&mut self) {
        self.streams = self.streams.map(|left| left.saturating_sub(1));
    }

    /// A request begins.
    pub fn take_request(&mut self) {
        self.requests = self.requests.map(|left| left.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_a_connection() {
        let none = Xmux {
            max_connections: Span::default(),
            request_times: Span::default(),
            reusable_secs: Span::default(),
            ..Xmux::default()
        };
        let mut free = none.budget(0, [0; 4]);
        for _ in 0..1000 {
            free.take_stream();
            free.take_request();
        }
        assert!(free.has_room(u64::MAX, 1000) && !none.wants_more(0, 0));
        let mut two = Xmux {
            reuse_times: Span::just(2),
            ..none
        }
        .budget(0, [0; 4]);
        two.take_stream();
        assert!(two.is_usable(0));
        two.take_stream();
        assert!(!two.is_usable(0));
        let mut asks = Xmux {
            request_times: Span::new(1, 2),
            ..none
        }
        .budget(0, [0, 0, u32::MAX, 0]);
        asks.take_request();
        assert!(asks.is_usable(0));
        asks.take_request();
        assert!(!asks.is_usable(0));
        let old = Xmux {
            reusable_secs: Span::just(5),
            ..none
        }
        .budget(10, [0; 4]);
        assert!(old.is_usable(14) && !old.is_usable(15));
        let few = Xmux {
            max_concurrency: Span::just(2),
            ..none
        }
        .budget(0, [0; 4]);
        assert!(few.has_room(0, 1) && !few.has_room(0, 2) && few.is_usable(0));
        assert!(Xmux::default().wants_more(2, 0) && !Xmux::default().wants_more(3, 0));
    }
}
