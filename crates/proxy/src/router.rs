//! Which outbound a connection takes.

use std::net::{IpAddr, SocketAddr};

use sealway_v2ray::{Address, Destination};

use crate::Error;
use crate::settings::{RouteByName, Rule};

/// What the rules look at.
pub(crate) struct Question<'a> {
    pub(crate) target: &'a Destination,
    pub(crate) source: Option<SocketAddr>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) email: &'a str,
    pub(crate) inbound: &'a str,
}

/// The rules, each with the number of its outbound.
pub(crate) struct Router {
    rules: Vec<(Rule, usize)>,
    by_name: RouteByName,
}

fn port_fits(ports: &[(u16, u16)], port: u16) -> bool {
    ports.is_empty() || ports.iter().any(|&(low, high)| (low..=high).contains(&port))
}

impl Router {
    /// Checks that every rule leads somewhere.
    pub(crate) fn new(rules: &[Rule], by_name: RouteByName, tags: &[&str]) -> Result<Self, Error> {
        let find = |(at, rule): (usize, &Rule)| {
            let outbound = tags.iter().position(|tag| !tag.is_empty() && *tag == rule.outbound_tag);
            let outbound = outbound.ok_or_else(|| {
                Error::config(
                    format!("routing.rules[{at}].outboundTag"),
                    format!("there is no outbound with the tag {:?}", rule.outbound_tag),
                )
            })?;
            Ok((rule.clone(), outbound))
        };
        let rules: Result<Vec<_>, Error> = rules.iter().enumerate().map(find).collect();
        Ok(Router { rules: rules?, by_name })
    }

    /// Number of the outbound of the first rule that fits. `resolve` is asked for the addresses of a name, once at most.
    pub(crate) async fn choose<F>(&self, question: &Question<'_>, resolve: F) -> Option<usize>
    where
        F: AsyncFnOnce() -> Vec<IpAddr>,
    {
        let mut resolve = Some(resolve);
        let name = match &question.target.address {
            Address::Domain(domain) => Some(domain.as_str().to_ascii_lowercase()),
            _ => None,
        };
        let mut ips: Vec<IpAddr> = question.target.address.ip().into_iter().collect();
        for (rule, outbound) in &self.rules {
            let by_ip = !rule.ips.is_empty();
            if by_ip
                && self.by_name == RouteByName::OnDemand
                && name.is_some()
                && let Some(resolve) = resolve.take()
            {
                ips = resolve().await;
            }
            if rule_fits(rule, question, name.as_deref(), &ips) {
                return Some(*outbound);
            }
        }
        if self.by_name == RouteByName::IfNonMatch
            && name.is_some()
            && self.rules.iter().any(|(rule, _)| !rule.ips.is_empty())
            && let Some(resolve) = resolve
        {
            let ips = resolve().await;
            let found = self
                .rules
                .iter()
                .find(|(rule, _)| rule_fits(rule, question, name.as_deref(), &ips));
            return found.map(|(_, outbound)| *outbound);
        }
        None
    }
}

fn rule_fits(rule: &Rule, question: &Question<'_>, name: Option<&str>, ips: &[IpAddr]) -> bool {
    let target = question.target;
    (rule.domains.is_empty() || name.is_some_and(|name| rule.domains.iter().any(|set| set.matches(name))))
        && (rule.ips.is_empty() || ips.iter().any(|&ip| rule.ips.iter().any(|set| set.matches(ip))))
        && port_fits(&rule.ports, target.port)
        && (rule.networks.is_empty() || rule.networks.contains(&target.network))
        && (rule.sources.is_empty()
            || question
                .source
                .is_some_and(|from| rule.sources.iter().any(|set| set.matches(from.ip()))))
        && (rule.source_ports.is_empty()
            || question
                .source
                .is_some_and(|from| port_fits(&rule.source_ports, from.port())))
        && (rule.locals.is_empty()
            || question
                .local
                .is_some_and(|to| rule.locals.iter().any(|set| set.matches(to.ip()))))
        && (rule.local_ports.is_empty() || question.local.is_some_and(|to| port_fits(&rule.local_ports, to.port())))
        && (rule.users.is_empty() || rule.users.matches(question.email))
        && (rule.inbound_tags.is_empty() || rule.inbound_tags.iter().any(|tag| tag == question.inbound))
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::Network;
    use sealway_v2ray::config::{At, Position};

    use super::*;
    use crate::settings::{DomainMatch, IpMatch, UserMatch, UserMatches};

    async fn choose(router: &Router, host: &str, port: u16, answer: &[&str]) -> Option<usize> {
        let target = Destination::tcp(Address::parse(host).unwrap(), port);
        let question = Question {
            target: &target,
            source: Some("192.0.2.9:1000".parse().unwrap()),
            local: None,
            email: "a@b",
            inbound: "in",
        };
        let answer = answer.iter().map(|ip| ip.parse().unwrap()).collect();
        router.choose(&question, async || answer).await
    }

    fn email(text: &str) -> UserMatches {
        let value = UserMatch::Email(text.into());
        UserMatches(vec![At {
            value,
            at: Position::default(),
        }])
    }

    fn to(tag: &str) -> Rule {
        Rule {
            outbound_tag: tag.into(),
            ..Rule::default()
        }
    }

    #[test]
    fn a_rule_that_leads_nowhere_is_refused() {
        let error = Router::new(&[to("gone")], RouteByName::AsIs, &["", "out"])
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "routing.rules[0].outboundTag: there is no outbound with the tag \"gone\""
        );
        assert!(Router::new(&[to("")], RouteByName::AsIs, &["", "out"]).is_err());
    }

    #[tokio::test]
    async fn the_first_rule_that_fits_decides() {
        let domain = |set, tag| Rule {
            domains: vec![set],
            ..to(tag)
        };
        let rules = [
            domain(DomainMatch::Full("a.example".into()), "0"),
            domain(DomainMatch::Domain("example".into()), "1"),
            domain(DomainMatch::Dotless("host".into()), "2"),
            Rule {
                ports: vec![(80, 90)],
                networks: vec![Network::Tcp],
                users: email("a@b"),
                ..to("3")
            },
            Rule {
                ports: vec![(100, 100)],
                users: email("x@y"),
                ..to("0")
            },
        ];
        let router = Router::new(&rules, RouteByName::AsIs, &["0", "1", "2", "3"]).unwrap();
        assert_eq!(choose(&router, "A.example", 1, &[]).await, Some(0));
        assert_eq!(choose(&router, "b.a.example", 1, &[]).await, Some(1));
        assert_eq!(choose(&router, "example", 1, &[]).await, Some(1));
        assert_eq!(choose(&router, "notexample", 1, &[]).await, None);
        assert_eq!(choose(&router, "myhost", 1, &[]).await, Some(2));
        assert_eq!(choose(&router, "my.host", 1, &[]).await, None);
        assert_eq!(choose(&router, "192.0.2.1", 85, &[]).await, Some(3));
        assert_eq!(choose(&router, "192.0.2.1", 100, &[]).await, None);
    }

    #[tokio::test]
    async fn rules_by_address_resolve_when_told_to() {
        let rules = [
            Rule {
                ips: vec![IpMatch::Private(true)],
                ..to("0")
            },
            Rule {
                domains: vec![DomainMatch::Keyword("x".into())],
                ..to("1")
            },
        ];
        let by = |by_name| Router::new(&rules, by_name, &["0", "1"]).unwrap();
        let private = ["10.0.0.1"];
        assert_eq!(choose(&by(RouteByName::AsIs), "x", 1, &private).await, Some(1));
        assert_eq!(choose(&by(RouteByName::OnDemand), "x", 1, &private).await, Some(0));
        assert_eq!(choose(&by(RouteByName::IfNonMatch), "x", 1, &private).await, Some(1));
        assert_eq!(choose(&by(RouteByName::IfNonMatch), "y", 1, &private).await, Some(0));
        assert_eq!(choose(&by(RouteByName::AsIs), "10.0.0.1", 1, &[]).await, Some(0));
    }
}
