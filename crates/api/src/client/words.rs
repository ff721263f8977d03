//! What each command does.

use prost::Message;
use serde_json::Value;
use tonic::{Code, Status};

use super::Failed;
use super::connect::Caller;
use super::flags::{Flag, Flags, Takes};
use crate::describe;
use crate::proto::xray::app::log::command as log;
use crate::proto::{TypedMessage, handler, routing, stats};

mod files;

/// A command.
pub struct Word {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    pub(super) flags: &'static [Flag],
}

const NAME: Flag = (&["name"], Takes::Text);
const EMAIL: Flag = (&["email"], Takes::Text);
const TAG: Flag = (&["tag"], Takes::Text);
const RESET: Flag = (&["reset"], Takes::Switch);

macro_rules! words {
    ($($name:literal $help:literal [$($flag:expr),*];)*) => {
        /// All commands.
        pub const WORDS: &[Word] = &[$(Word { name: $name, help: $help, flags: &[$($flag),*] }),*];
    };
}

words! {
    "restartlogger" "Open the log files again" [];
    "stats" "A counter: -name, -reset" [NAME, RESET];
    "statsquery" "Counters: -pattern, -reset" [(&["pattern"], Takes::Text), RESET];
    "statssys" "The process" [];
    "statsonline" "How many addresses a user is connected from: -email" [EMAIL];
    "statsonlineiplist" "The addresses a user is connected from: -email" [EMAIL];
    "statsgetallonlineusers" "All users that are connected" [];
    "adi" "Add the inbounds of files" [];
    "rmi" "Remove inbounds by tag, or those of files" [];
    "lsi" "List inbounds: --isOnlyTags" [(&["isOnlyTags"], Takes::Switch)];
    "ado" "Add the outbounds of files" [];
    "rmo" "Remove outbounds by tag, or those of files" [];
    "lso" "List outbounds" [];
    "adu" "Add the users of the inbounds of files" [];
    "rmu" "Remove users by e-mail: -tag" [TAG];
    "inbounduser" "Users of an inbound: -tag, -email" [TAG, EMAIL];
    "inboundusercount" "How many users an inbound has: -tag" [TAG];
    "adrules" "Add the rules of files, in place of those that there are: -append" [(&["append"], Takes::Switch)];
    "rmrules" "Remove rules by ruleTag" [];
    "lsrules" "List rules" [];
    "bi" "What balancers choose" [];
    "bo" "Override what a balancer chooses: -b BALANCER TAG, or -b BALANCER -r" [(&["b"], Takes::Text), (&["remove", "r"], Takes::Switch)];
    "sib" "Lead addresses of clients to an outbound: -outbound, -inbound, -ruletag, -reset" [
        (&["outbound"], Takes::Text), (&["inbound"], Takes::Text), (&["ruletag"], Takes::Text), RESET
    ];
}

/// The path of a method.
macro_rules! path {
    (handler $method:literal) => {
        concat!("/xray.app.proxyman.command.HandlerService/", $method)
    };
    (stats $method:literal) => {
        concat!("/xray.app.stats.command.StatsService/", $method)
    };
    (routing $method:literal) => {
        concat!("/xray.app.router.command.RoutingService/", $method)
    };
    (log $method:literal) => {
        concat!("/xray.app.log.command.LoggerService/", $method)
    };
}

// Behind the macro, which it uses.
mod add;

type Print<'a> = &'a mut (dyn FnMut(&str) + Send);

/// A refusal in the words of Go's library, which scripts look for.
fn said(status: &Status) -> String {
    let code = match status.code() {
        Code::NotFound => "NotFound",
        Code::Unimplemented => "Unimplemented",
        Code::Unavailable if status.message().starts_with("failed to dial") => return status.message().to_owned(),
        Code::Unavailable => "Unavailable",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::Internal => "Internal",
        _ => "Unknown",
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}

/// Says what failed.
fn failed(what: &str) -> impl Fn(Status) -> Failed {
    move |status| {
        let said = said(&status);
        Failed::Server(match said.starts_with("failed to dial") {
            true => said,
            false => format!("failed to {what}: {said}"),
        })
    }
}

/// Prints an answer.
fn show(print: Print<'_>, kind: &str, answer: &impl Message) -> Result<(), Failed> {
    let value = describe::to_json(kind, &answer.encode_to_vec());
    let value = value.map_err(|what| Failed::Server(format!("the answer cannot be shown: {what}")))?;
    print(&format!("{}\n\n", indented(&value)));
    Ok(())
}

/// JSON with four spaces a level.
fn indented(value: &Value) -> String {
    let text = format!("{value:#}");
    let lines = text.lines().map(|line| {
        let bare = line.trim_start();
        format!("{}{bare}", " ".repeat(2 * (line.len() - bare.len())))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn needed<'f>(flags: &'f Flags, name: &str) -> Result<&'f str, Failed> {
    match flags.text(name) {
        "" => Err(Failed::Usage(format!("-{name} is missing"))),
        text => Ok(text),
    }
}

fn some(flags: &Flags, what: &str) -> Result<(), Failed> {
    match flags.words.is_empty() {
        true => Err(Failed::Usage(format!("name {what}"))),
        false => Ok(()),
    }
}

pub(super) async fn run(word: &str, flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    match word {
        "restartlogger" => {
            let answer: log::RestartLoggerResponse = caller
                .call(path!(log "RestartLogger"), log::RestartLoggerRequest {})
                .await
                .map_err(failed("restart the logger"))?;
            show(print, "xray.app.log.command.RestartLoggerResponse", &answer)
        }
        "adi" | "ado" | "adrules" => {
            some(flags, "files")?;
            match word {
                "adi" => add::inbounds(flags, caller, print).await,
                "ado" => add::outbounds(flags, caller, print).await,
                _ => add::rules(flags, caller, print).await,
            }
        }
        "adu" => files::add_users(flags, caller, print).await,
        word if word.starts_with("stats") => of_stats(word, flags, caller, print).await,
        "rmrules" | "lsrules" | "bi" | "bo" | "sib" => of_routing(word, flags, caller, print).await,
        word => of_handlers(word, flags, caller, print).await,
    }
}

async fn of_stats(word: &str, flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    let online = || {
        Ok(stats::GetStatsRequest {
            name: format!("user>>>{}>>>online", needed(flags, "email")?),
            reset: false,
        })
    };
    let failed = failed("get stats");
    match word {
        "stats" => {
            let request = stats::GetStatsRequest {
                name: flags.text("name").to_owned(),
                reset: flags.on("reset"),
            };
            let answer: stats::GetStatsResponse =
                caller.call(path!(stats "GetStats"), request).await.map_err(failed)?;
            show(print, "xray.app.stats.command.GetStatsResponse", &answer)
        }
        "statsquery" => {
            let request = stats::QueryStatsRequest {
                pattern: flags.text("pattern").to_owned(),
                reset: flags.on("reset"),
                ..Default::default()
            };
            let answer: stats::QueryStatsResponse =
                caller.call(path!(stats "QueryStats"), request).await.map_err(failed)?;
            show(print, "xray.app.stats.command.QueryStatsResponse", &answer)
        }
        "statssys" => {
            let answer: stats::SysStatsResponse = caller
                .call(path!(stats "GetSysStats"), stats::SysStatsRequest {})
                .await
                .map_err(failed)?;
            show(print, "xray.app.stats.command.SysStatsResponse", &answer)
        }
        "statsonline" => {
            let answer: stats::GetStatsResponse = caller
                .call(path!(stats "GetStatsOnline"), online()?)
                .await
                .map_err(failed)?;
            show(print, "xray.app.stats.command.GetStatsResponse", &answer)
        }
        "statsonlineiplist" => {
            let answer: stats::GetStatsOnlineIpListResponse = caller
                .call(path!(stats "GetStatsOnlineIpList"), online()?)
                .await
                .map_err(failed)?;
            show(print, "xray.app.stats.command.GetStatsOnlineIpListResponse", &answer)
        }
        _ => {
            let answer: stats::GetAllOnlineUsersResponse = caller
                .call(path!(stats "GetAllOnlineUsers"), stats::GetAllOnlineUsersRequest {})
                .await
                .map_err(failed)?;
            show(print, "xray.app.stats.command.GetAllOnlineUsersResponse", &answer)
        }
    }
}

async fn of_handlers(word: &str, flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    match word {
        "lsi" => {
            let request = handler::ListInboundsRequest {
                is_only_tags: flags.on("isOnlyTags"),
            };
            let answer: handler::ListInboundsResponse = caller
                .call(path!(handler "ListInbounds"), request)
                .await
                .map_err(failed("list inbounds"))?;
            show(print, "xray.app.proxyman.command.ListInboundsResponse", &answer)
        }
        "lso" => {
            let answer: handler::ListOutboundsResponse = caller
                .call(path!(handler "ListOutbounds"), handler::ListOutboundsRequest {})
                .await
                .map_err(failed("list outbounds"))?;
            show(print, "xray.app.proxyman.command.ListOutboundsResponse", &answer)
        }
        "rmi" | "rmo" => {
            some(flags, "tags or files")?;
            let inbound = word == "rmi";
            let list = if inbound { "inbounds" } else { "outbounds" };
            let tags = files::tags(&flags.words, list)?;
            if inbound {
                print(&format!("removing inbounds: [{}]\n", tags.join(" ")));
            }
            for tag in tags {
                print(&format!("removing: {tag}\n"));
                if inbound {
                    let request = handler::RemoveInboundRequest { tag };
                    let answer: handler::RemoveInboundResponse = caller
                        .call(path!(handler "RemoveInbound"), request)
                        .await
                        .map_err(failed("remove inbound"))?;
                    show(print, "xray.app.proxyman.command.RemoveInboundResponse", &answer)?;
                } else {
                    let request = handler::RemoveOutboundRequest { tag };
                    let answer: handler::RemoveOutboundResponse = caller
                        .call(path!(handler "RemoveOutbound"), request)
                        .await
                        .map_err(failed("remove outbound"))?;
                    show(print, "xray.app.proxyman.command.RemoveOutboundResponse", &answer)?;
                }
            }
            Ok(())
        }
        "rmu" => {
            let tag = needed(flags, "tag")?;
            let mut removed = 0;
            for email in &flags.words {
                print(&format!("remove user: {email}\n"));
                let email = email.clone();
                let operation = handler::RemoveUserOperation { email };
                match alter(caller, tag, "xray.app.proxyman.command.RemoveUserOperation", &operation).await {
                    Ok(()) => removed += 1,
                    Err(status) => print(&format!("{}\n", said(&status))),
                }
            }
            print(&format!("Removed {removed} user(s) in total.\n"));
            Ok(())
        }
        word => {
            let request = handler::GetInboundUserRequest {
                tag: needed(flags, "tag")?.to_owned(),
                email: flags.text("email").to_owned(),
            };
            if word == "inbounduser" {
                let answer: handler::GetInboundUserResponse = caller
                    .call(path!(handler "GetInboundUsers"), request)
                    .await
                    .map_err(failed("get inbound user"))?;
                return show(print, "xray.app.proxyman.command.GetInboundUserResponse", &answer);
            }
            let answer: handler::GetInboundUsersCountResponse = caller
                .call(path!(handler "GetInboundUsersCount"), request)
                .await
                .map_err(failed("get inbound user count"))?;
            show(print, "xray.app.proxyman.command.GetInboundUsersCountResponse", &answer)
        }
    }
}

/// Does something to the users of an inbound.
async fn alter(caller: &Caller, tag: &str, kind: &str, operation: &impl Message) -> Result<(), Status> {
    let request = handler::AlterInboundRequest {
        tag: tag.to_owned(),
        operation: Some(crate::compiled::typed(kind, operation)),
    };
    let answer = caller.call(path!(handler "AlterInbound"), request).await;
    answer.map(|_: handler::AlterInboundResponse| ())
}

async fn of_routing(word: &str, flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    match word {
        "lsrules" => {
            let answer: routing::ListRuleResponse = caller
                .call(path!(routing "ListRule"), routing::ListRuleRequest {})
                .await
                .map_err(failed("list rules"))?;
            show(print, "xray.app.router.command.ListRuleResponse", &answer)
        }
        "rmrules" => {
            for tag in &flags.words {
                remove_rule(caller, tag, print).await?;
            }
            Ok(())
        }
        "bi" => balancers(flags, caller, print).await,
        "bo" => {
            let balancer_tag = needed(flags, "b")?.to_owned();
            let target = match flags.words.as_slice() {
                _ if flags.on("remove") => String::new(),
                [target] => target.clone(),
                _ => return Err(Failed::Usage("name one outbound, or -r".to_owned())),
            };
            let request = routing::OverrideBalancerTargetRequest { balancer_tag, target };
            let answer: Result<routing::OverrideBalancerTargetResponse, _> =
                caller.call(path!(routing "OverrideBalancerTarget"), request).await;
            answer.map(drop).map_err(failed("override balancer"))
        }
        _ => {
            some(flags, "addresses")?;
            let rule_tag = match flags.text("ruletag") {
                "" => "sourceIpBlock",
                tag => tag,
            };
            let rule = files::source_rule(rule_tag, flags)?;
            if flags.on("reset") {
                remove_rule(caller, rule_tag, print).await?;
            }
            add_rules(caller, rule, true, print).await
        }
    }
}

async fn remove_rule(caller: &Caller, tag: &str, print: Print<'_>) -> Result<(), Failed> {
    let rule_tag = tag.to_owned();
    let answer: routing::RemoveRuleResponse = caller
        .call(path!(routing "RemoveRule"), routing::RemoveRuleRequest { rule_tag })
        .await
        .map_err(failed("remove rule"))?;
    show(print, "xray.app.router.command.RemoveRuleResponse", &answer)
}

async fn add_rules(caller: &Caller, config: TypedMessage, append: bool, print: Print<'_>) -> Result<(), Failed> {
    let request = routing::AddRuleRequest {
        config: Some(config),
        should_append: append,
    };
    let answer: routing::AddRuleResponse = caller
        .call(path!(routing "AddRule"), request)
        .await
        .map_err(failed("add rules"))?;
    show(print, "xray.app.router.command.AddRuleResponse", &answer)
}

/// What balancers choose, as a table.
async fn balancers(flags: &Flags, caller: &Caller, print: Print<'_>) -> Result<(), Failed> {
    // Without a name Xray asks for the balancer without one.
    let nameless = [String::new()];
    let tags = if flags.words.is_empty() {
        &nameless[..]
    } else {
        &flags.words
    };
    for tag in tags {
        let request = routing::GetBalancerInfoRequest { tag: tag.clone() };
        let answer: routing::GetBalancerInfoResponse = caller
            .call(path!(routing "GetBalancerInfo"), request)
            .await
            .map_err(failed("get health information"))?;
        let balancer = answer.balancer.unwrap_or_default();
        let row = |(at, tag): (usize, &str)| format!("    {:<4}{tag:<14}\n", at + 1);
        let chosen = balancer.r#override.unwrap_or_default().target;
        let targets = balancer.principle_target.unwrap_or_default().tag;
        let targets: String = targets.iter().map(String::as_str).enumerate().map(row).collect();
        print(&format!(
            "  - Selecting Override:\n{}  - Selects:\n{targets}",
            row((0, chosen.as_str()))
        ));
    }
    Ok(())
}
