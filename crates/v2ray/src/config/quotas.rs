//! Whose limits are whose: what users, levels and the store say of them together.

use std::collections::{BTreeSet, HashMap};

use super::context::Cx;
use super::inbound::Inbound;
use super::limits::Limits;
use super::policy::Policy;
use super::protocol::{InboundProtocol, ShadowsocksUsers, User};
use super::stats::StatsStore;
use crate::problem::{At, Position};

/// A user as limits see him.
struct Limited<'a> {
    email: &'a str,
    level: u32,
    limits: Limits,
    at: Position,
}

/// The users of an inbound whose entries may have limits.
fn users(inbound: &Inbound) -> Vec<Limited<'_>> {
    fn of<K>(user: &User<K>) -> Limited<'_> {
        Limited {
            email: &user.email,
            level: user.level,
            limits: user.limits,
            at: user.at,
        }
    }
    match &inbound.protocol {
        InboundProtocol::Vless(vless) => vless.users.iter().map(|one| of(&one.user)).collect(),
        InboundProtocol::Vmess(vmess) => vmess.users.iter().map(of).collect(),
        InboundProtocol::Trojan(trojan) => trojan.users.iter().map(of).collect(),
        InboundProtocol::Shadowsocks(shadowsocks) => match &shadowsocks.users {
            ShadowsocksUsers::One(user) => vec![of(user)],
            ShadowsocksUsers::Classic(users) | ShadowsocksUsers::Many(_, users) => users.iter().map(of).collect(),
        },
        _ => Vec::new(),
    }
}

impl Inbound {
    /// The names of its users, and what their entries say of limits. Users without a name are left out.
    pub fn limits(&self) -> Vec<(String, Limits)> {
        let named = users(self).into_iter().filter(|user| !user.email.is_empty());
        named.map(|user| (user.email.to_owned(), user.limits)).collect()
    }
}

/// Tells of limits and quotas that could not be kept, and of users whose limits are not the same in every inbound.
pub(super) fn check(inbounds: &[(usize, Inbound)], policy: &Policy, store: Option<&At<StatsStore>>, cx: &mut Cx<'_>) {
    let mut seen: HashMap<String, (Limits, Position)> = HashMap::new();
    let (mut without_store, mut levels) = (None, BTreeSet::new());
    for (place, inbound) in inbounds {
        for user in users(inbound) {
            levels.insert(user.level);
            let limits = user.limits.or(policy.level(user.level).limits());
            let has_quota = limits.quota.is_some_and(|quota| quota > 0);
            if limits.is_limit() && user.email.is_empty() {
                let text = "a user without a name has limits, by this entry or by the level";
                let hint = "give the user an `email`, by which connections and bytes are known for the user's";
                cx.within("inbounds", |cx| {
                    cx.at_index(*place, |cx| cx.error(user.at, text, hint));
                });
            }
            if has_quota && store.is_none() {
                without_store.get_or_insert(user.at);
            }
            if user.email.is_empty() {
                continue;
            }
            match seen.get(&user.email.to_lowercase()) {
                Some((first, at)) if *first != limits => {
                    let text = format!(
                        "the user has other limits than on line {}, and the last ones count",
                        at.line
                    );
                    let hint = "limits are one user's over all inbounds: write the same everywhere";
                    cx.within("inbounds", |cx| cx.at_index(*place, |cx| cx.warn(user.at, text, hint)));
                }
                Some(_) => {}
                None => {
                    seen.insert(user.email.to_lowercase(), (limits, user.at));
                }
            }
        }
    }
    if store.is_some() {
        return;
    }
    let hint = "write \"stats\": {\"store\": \"/var/lib/sealway/usage.db\"}, or a postgres:// URL there";
    if let Some(at) = without_store {
        let text = "the user has a quota, and there is no `stats.store` to keep what was used";
        cx.error(at, text, hint);
    }
    // Of levels with users in the file these have been asked. Others are for users who come while it runs.
    for number in policy.listed().filter(|number| !levels.contains(number)) {
        if let Some(quota) = policy.level(number).quota.filter(|quota| quota.value.0 > 0) {
            let text = format!("level {number} has a quota, and there is no `stats.store` to keep what was used");
            cx.error(quota.at, text, hint);
        }
    }
}

#[cfg(test)]
mod tests;
