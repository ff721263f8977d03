//! Users.

use std::mem::take;

use sealway_proxy::settings::{self, NewAccount, NewUser};
use sealway_v2ray::UserId;
use sealway_v2ray::shadowsocks::Method;
use sealway_v2ray::text::{escape, is_hidden};
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vless::Flow;
use sealway_v2ray::vless::vision::Seed;

use super::{Refused, open, unsupported};
use crate::proto::xray::proxy::{shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess};
use crate::proto::{User, canonical};

/// An account, as texts that its protocol gives a meaning.
pub(crate) enum Account {
    /// VLESS: an id, a flow, and four numbers for its padding or none.
    Vless { id: String, flow: String, seed: Vec<u32> },
    /// VMess: an id.
    Vmess { id: String },
    /// Trojan: a password.
    Trojan { password: String },
    /// Shadowsocks: a password or a key, and a method if it is not the inbound's.
    Shadowsocks { password: String, method: Option<Method> },
    /// SOCKS and HTTP: a name and a password.
    Named { user: String, pass: String },
}

/// Reads the account of a user.
pub(crate) fn account(user: &User) -> Result<Account, Refused> {
    let Some(typed) = &user.account else {
        return Err(Refused::Broken("the user has no account".to_owned()));
    };
    Ok(match &*canonical(&typed.r#type) {
        "xray.proxy.vless.Account" => {
            let mut account: vless::Account = open(typed)?;
            let plain = matches!(account.encryption.as_str(), "" | "none");
            if !plain || account.xor_mode != 0 || account.seconds != 0 || !account.padding.is_empty() {
                return unsupported("VLESS encryption (mlkem768x25519plus)");
            }
            if account.reverse.is_some() {
                return unsupported("reverse connections");
            }
            Account::Vless {
                id: take(&mut account.id),
                flow: take(&mut account.flow),
                seed: take(&mut account.testseed),
            }
        }
        "xray.proxy.vmess.Account" => {
            let mut account: vmess::Account = open(typed)?;
            if account.alter_id != 0 {
                return unsupported("VMess without AEAD (alter_id other than 0)");
            }
            Account::Vmess {
                id: take(&mut account.id),
            }
        }
        "xray.proxy.trojan.Account" => {
            let mut account: trojan::Account = open(typed)?;
            Account::Trojan {
                password: take(&mut account.password),
            }
        }
        "xray.proxy.shadowsocks.Account" => {
            let mut account: shadowsocks::Account = open(typed)?;
            Account::Shadowsocks {
                method: method(account.cipher_type, typed.r#type.contains("v2ray.core."))?,
                password: take(&mut account.password),
            }
        }
        "xray.proxy.shadowsocks_2022.Account" => {
            let mut account: shadowsocks_2022::Account = open(typed)?;
            Account::Shadowsocks {
                method: None,
                password: take(&mut account.key),
            }
        }
        "xray.proxy.socks.Account" | "xray.proxy.http.Account" => {
            let mut account: socks::Account = open(typed)?;
            Account::Named {
                user: take(&mut account.username),
                pass: take(&mut account.password),
            }
        }
        other => return unsupported(format!("the account {other}")),
    })
}

/// Longest e-mail of a user, bytes.
pub(super) const MAX_EMAIL: usize = 1024;

/// Refuses e-mails that would forge lines of logs, or fill them.
pub(super) fn check_email(email: &str) -> Result<(), Refused> {
    if email.len() > MAX_EMAIL {
        return Err(Refused::Wrong(format!("the e-mail is longer than {MAX_EMAIL} bytes")));
    }
    match email.contains(is_hidden) {
        true => Err(Refused::Wrong(format!(
            "the e-mail {} holds a control character",
            escape(email)
        ))),
        false => Ok(()),
    }
}

/// Reads a user who is added to a running inbound.
pub(crate) fn new_user(user: User) -> Result<NewUser, Refused> {
    check_email(&user.email)?;
    let id = |text: &str| UserId::parse(text).map_err(|error| Refused::Wrong(error.to_string()));
    let account = match account(&user)? {
        Account::Vless { id: text, flow, seed } => {
            let flow = match flow.as_str() {
                "" | "none" => Flow::None,
                flow if flow == Flow::Vision.as_str() => Flow::Vision,
                other => return unsupported(format!("the flow {other:?}")),
            };
            let seed = match (seed.as_slice(), <[u32; 4]>::try_from(seed.as_slice())) {
                ([], _) => Seed::default(),
                (_, Ok(numbers)) => Seed::new(numbers),
                (other, Err(_)) => {
                    let text = format!("testseed has four numbers, not {}", other.len());
                    return Err(Refused::Wrong(text));
                }
            };
            NewAccount::Vless(id(&text)?, flow, seed)
        }
        Account::Vmess { id: text } => NewAccount::Vmess(id(&text)?),
        Account::Trojan { password } if password.is_empty() => {
            return Err(Refused::Wrong("the password is empty".to_owned()));
        }
        Account::Trojan { password } => NewAccount::Trojan(Key::of_password(&password)),
        Account::Shadowsocks { password, method } => NewAccount::ShadowsocksPassword(method, password),
        Account::Named { user, pass } => NewAccount::Login(settings::Account { user, pass }),
    };
    Ok(NewUser {
        email: user.email,
        level: user.level,
        account,
    })
}

/// The method of a number, of which the two cores have their own. 0 is the inbound's.
fn method(number: i32, of_v2ray: bool) -> Result<Option<Method>, Refused> {
    let number = match number {
        1..=3 if of_v2ray => number + 4,
        4 if of_v2ray => 9,
        number => number,
    };
    Ok(match number {
        0 => None,
        5 => Some(Method::Aes128Gcm),
        6 => Some(Method::Aes256Gcm),
        7 => Some(Method::ChaCha20Poly1305),
        8 => Some(Method::XChaCha20Poly1305),
        9 => return unsupported("Shadowsocks without encryption"),
        other => return unsupported(format!("the Shadowsocks method {other}")),
    })
}
