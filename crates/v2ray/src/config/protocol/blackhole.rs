//! Nowhere: connections are refused.

use super::Side;
use crate::config::context::Cx;
use crate::config::stream::Stream;
use crate::config::table::{object, words};
use crate::problem::Position;

words! {
    /// How a refused connection is answered.
    pub enum BlackholeResponse {
        /// Not at all.
        None = "none" | "";
        /// By `HTTP/1.1 403 Forbidden`.
        Http = "http";
    }
}

object! {
    /// How refused connections are answered.
    pub struct BlackholeAnswer: "blackhole settings.response" {
        /// The kind of answer.
        kind: BlackholeResponse = "type", default "\"none\"";
    }
}

object! {
    /// Nowhere.
    pub struct BlackholeSettings: "blackhole settings" {
        /// How refused connections are answered.
        response: BlackholeAnswer = "response", default "{}";
    }
}

impl Side for BlackholeSettings {
    fn has_secrets(&self) -> bool {
        false
    }

    fn check_stream(&self, stream: &Stream, _: Position, cx: &mut Cx<'_>) {
        if !stream.is_bare() {
            let text = "`network` and `security` have no effect on a blackhole outbound, which dials nobody";
            let hint = "they belong to outbounds that go through a server";
            cx.warn_in("streamSettings", stream.at, text, hint);
        }
    }
}
