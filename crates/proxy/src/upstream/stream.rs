//! Questions in streams, each behind two bytes that hold its length (RFC 7766, RFC 7858).

use std::sync::Arc;

use super::Way;
use super::pipes::{Kind, Pipes};
use crate::Error;
use crate::dns::Exchange;
use crate::dns::message::{Answer, Form, Question, Reply};
use crate::error::Pending;
use crate::roads;

/// A server that is asked by streams.
pub(super) struct Streams {
    pipes: Pipes,
    padded: bool,
}

impl Streams {
    pub(super) fn new(way: Arc<Way>) -> Streams {
        Streams {
            padded: way.tls.is_some(),
            pipes: Pipes::new(way, Kind::Streams),
        }
    }

    pub(super) async fn exchange(&self, question: &Question) -> Result<Answer, Error> {
        let mut form = Form {
            padded: self.padded,
            ..Form::default()
        };
        loop {
            match self.once(question, form).await? {
                Reply::Answer(answer) => return Ok(answer),
                Reply::TooNew if !form.plain => form.plain = true,
                Reply::Refused(_) => return Err(Error::protocol("DNS", "the server has no answer")),
                _ => return Err(Error::protocol("DNS", "an answer to something else")),
            }
        }
    }

    /// Asks in one form.
    pub(super) async fn once(&self, question: &Question, form: Form) -> Result<Reply, Error> {
        self.pipes.ask(question, form, None).await
    }
}

impl Exchange for Streams {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        Box::pin(roads::inherit(async move { self.exchange(&question).await }))
    }
}
