//! Counters, users that are online, and the process itself.

use std::sync::Arc;
use std::time::Instant;

use memchr::memmem::Finder;
use regex::RegexBuilder;
use sealway_proxy::{Control, Show};
use tonic::{Request, Response, Status};

use super::aside;
use crate::options::{LISTENER, Options};
use crate::proto::stats::stats_service_server::StatsService;
use crate::proto::stats::{
    GetAllOnlineUsersRequest, GetAllOnlineUsersResponse, GetStatsOnlineIpListResponse, GetStatsRequest,
    GetStatsResponse, GetUsersStatsRequest, GetUsersStatsResponse, OnlineIpEntry, QueryStatsRequest,
    QueryStatsResponse, Stat, SysStatsRequest, SysStatsResponse, TrafficUserStat, UserStat,
};

/// Patterns in a question.
const MAX_PATTERNS: usize = 64;
/// Bytes that the regular expressions of a question may take together once they are read, and as many for what they find.
const MAX_EXPRESSION: usize = 1 << 20;

pub(crate) struct Stats {
    control: Control,
    options: Arc<Options>,
    began: Instant,
}

impl Stats {
    pub(crate) fn new(control: Control, options: &Arc<Options>, began: Instant) -> Stats {
        Stats {
            control,
            options: Arc::clone(options),
            began,
        }
    }
}

/// Whether a counter is that of the API's own listener or tag, which nobody configured.
fn is_own(options: &Options, name: &str) -> bool {
    let of = |kind: &str, tag: &str| {
        let rest = name.strip_prefix(kind).and_then(|name| name.strip_prefix(tag));
        rest.is_some_and(|rest| rest.starts_with(">>>"))
    };
    of("inbound>>>", LISTENER) || of("outbound>>>", LISTENER) || of("outbound>>>", &options.tag)
}

fn not_found(name: &str) -> Status {
    Status::not_found(format!("{name} not found."))
}

fn stat(name: impl Into<String>, value: u64) -> Stat {
    Stat {
        name: name.into(),
        value: i64::try_from(value).unwrap_or(i64::MAX),
    }
}

/// The user of `user>>>EMAIL>>>online`.
fn online_of(name: &str) -> Option<&str> {
    name.strip_prefix("user>>>")?.strip_suffix(">>>online")
}

/// Which names a question is about.
enum Wanted {
    /// Those with one of these in them; all, if there are none.
    Parts(Vec<Finder<'static>>),
    /// Those in which one of these is found.
    Expressions(Vec<regex::Regex>),
}

impl Wanted {
    fn of(query: QueryStatsRequest) -> Result<Wanted, Status> {
        let mut patterns = query.patterns;
        if !query.pattern.is_empty() {
            patterns.push(query.pattern);
        }
        if patterns.len() > MAX_PATTERNS {
            return Err(Status::unknown(format!("more than {MAX_PATTERNS} patterns")));
        }
        if !query.regexp {
            // An empty one is part of every name.
            let all = patterns.iter().any(String::is_empty);
            let finder = |pattern: &String| Finder::new(pattern).into_owned();
            return Ok(Wanted::Parts(match all {
                true => Vec::new(),
                false => patterns.iter().map(finder).collect(),
            }));
        }
        let each = MAX_EXPRESSION / patterns.len().max(1);
        let read = |pattern: &String| {
            let built = RegexBuilder::new(pattern).size_limit(each).dfa_size_limit(each).build();
            built.map_err(|error| Status::unknown(error.to_string()))
        };
        patterns
            .iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Wanted::Expressions)
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Wanted::Parts(parts) => parts.is_empty() || parts.iter().any(|part| part.find(name.as_bytes()).is_some()),
            Wanted::Expressions(all) => all.is_empty() || all.iter().any(|one| one.is_match(name)),
        }
    }
}

#[tonic::async_trait]
impl StatsService for Stats {
    async fn get_stats(&self, request: Request<GetStatsRequest>) -> Result<Response<GetStatsResponse>, Status> {
        let GetStatsRequest { name, reset } = request.into_inner();
        let counter = self
            .control
            .stats()
            .get(&name)
            .filter(|_| !is_own(&self.options, &name));
        let counter = counter.ok_or_else(|| not_found(&name))?;
        let value = if reset { counter.take() } else { counter.get() };
        let stat = Some(stat(name, value));
        Ok(Response::new(GetStatsResponse { stat }))
    }

    async fn get_stats_online(&self, request: Request<GetStatsRequest>) -> Result<Response<GetStatsResponse>, Status> {
        let name = request.into_inner().name;
        let count = online_of(&name).and_then(|email| self.control.stats().online(email));
        let count = count.ok_or_else(|| not_found(&name))?;
        let stat = Some(stat(name, count.into()));
        Ok(Response::new(GetStatsResponse { stat }))
    }

    async fn query_stats(&self, request: Request<QueryStatsRequest>) -> Result<Response<QueryStatsResponse>, Status> {
        let query = request.into_inner();
        let (control, options) = (self.control.clone(), Arc::clone(&self.options));
        aside(move || {
            let reset = query.reset;
            let wanted = Wanted::of(query)?;
            let mut all = Vec::new();
            let wanted = |name: &str| wanted.has(name) && !is_own(&options, name);
            let show = |name: &str, value| all.push(stat(name, value));
            control.stats().each(reset, wanted, show);
            Ok(QueryStatsResponse { stat: all })
        })
        .await
    }

    async fn get_sys_stats(&self, _: Request<SysStatsRequest>) -> Result<Response<SysStatsResponse>, Status> {
        let memory = Memory::now();
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Ok(Response::new(SysStatsResponse {
            num_goroutine: u32::try_from(tasks).unwrap_or(u32::MAX),
            alloc: memory.data,
            total_alloc: memory.data,
            sys: memory.resident,
            uptime: u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX),
            // There is no garbage collector, and nobody counts single allocations.
            ..SysStatsResponse::default()
        }))
    }

    async fn get_stats_online_ip_list(
        &self,
        request: Request<GetStatsRequest>,
    ) -> Result<Response<GetStatsOnlineIpListResponse>, Status> {
        let name = request.into_inner().name;
        let stats = self.control.stats();
        let email = online_of(&name).filter(|email| stats.online(email).is_some());
        let email = email.ok_or_else(|| not_found(&name))?;
        let ips = stats.online_addresses(email).into_iter();
        let ips = ips.map(|(ip, at)| (ip.to_string(), at)).collect();
        Ok(Response::new(GetStatsOnlineIpListResponse { name, ips }))
    }

    async fn get_users_stats(
        &self,
        request: Request<GetUsersStatsRequest>,
    ) -> Result<Response<GetUsersStatsResponse>, Status> {
        let GetUsersStatsRequest { include_traffic, reset } = request.into_inner();
        let counters = match (include_traffic, reset) {
            (false, _) => Show::Nothing,
            (true, false) => Show::AsTheyAre,
            (true, true) => Show::AndReset,
        };
        let bytes = |count: Option<u64>| i64::try_from(count.unwrap_or_default()).unwrap_or(i64::MAX);
        let control = self.control.clone();
        aside(move || {
            let users = control.online_users(counters).into_iter();
            let users = users.map(|user| {
                let seen = user.addresses.into_iter();
                let [uplink, downlink] = user.traffic.map(bytes);
                UserStat {
                    email: user.email,
                    ips: seen
                        .map(|(ip, last_seen)| OnlineIpEntry {
                            ip: ip.to_string(),
                            last_seen,
                        })
                        .collect(),
                    traffic: include_traffic.then_some(TrafficUserStat { uplink, downlink }),
                }
            });
            Ok(GetUsersStatsResponse { users: users.collect() })
        })
        .await
    }

    async fn get_all_online_users(
        &self,
        _: Request<GetAllOnlineUsersRequest>,
    ) -> Result<Response<GetAllOnlineUsersResponse>, Status> {
        let users = self.control.stats().online_users().into_iter();
        let users = users.map(|email| format!("user>>>{email}>>>online")).collect();
        Ok(Response::new(GetAllOnlineUsersResponse { users }))
    }
}

/// Memory of this process, in bytes.
#[derive(Default)]
struct Memory {
    resident: u64,
    data: u64,
}

impl Memory {
    /// All 0 on systems without `/proc`.
    fn now() -> Memory {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
        };
        Memory {
            resident: of("VmRSS:"),
            data: of("RssAnon:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(patterns: &[&str], regexp: bool) -> Result<Wanted, Status> {
        Wanted::of(QueryStatsRequest {
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            regexp,
            ..Default::default()
        })
    }

    #[test]
    fn patterns_find_what_they_say() {
        let name = "user>>>a@b>>>traffic>>>uplink";
        for (patterns, regexp, found) in [
            (&[][..], false, true),
            (&[], true, true),
            (&["", "nobody"], false, true),
            (&["nobody"], false, false),
            (&["nobody", "a@b"], false, true),
            (&["^user.*link$"], false, false),
            (&["^user.*link$"], true, true),
            (&["^in", "^out"], true, false),
        ] {
            let wanted = wanted(patterns, regexp).unwrap();
            assert_eq!(wanted.has(name), found, "{patterns:?}");
        }
        assert!(wanted(&["("], true).is_err());
    }

    #[test]
    fn a_question_has_so_many_patterns_and_so_much_memory() {
        for regexp in [false, true] {
            assert!(wanted(&["a"; MAX_PATTERNS], regexp).is_ok());
            assert!(wanted(&["a"; MAX_PATTERNS + 1], regexp).is_err());
        }
        // Each counts for itself only as long as there is one.
        assert!(wanted(&[r"\w{8}"], true).is_ok());
        assert!(wanted(&[r"\w{8}"; MAX_PATTERNS], true).is_err());
        assert!(wanted(&[r"\w{1000}"], true).is_err());
    }
}
