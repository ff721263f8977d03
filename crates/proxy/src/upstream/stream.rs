//! Questions in streams, each behind two bytes that hold its length (RFC 7766, RFC 7858).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Way;
use crate::dns::Exchange;
use crate::dns::message::{Answer, Form, Question, Reply};
use crate::error::Pending;
use crate::roads;
use crate::stream::adapter::Io;
use crate::{Error, random};

/// How long a stream is kept for the next question.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Streams to a server at a time. Who needs one more waits, for as long as the question may take.
pub(super) const MAX_STREAMS: usize = 64;
/// Messages that one question may be answered with, of which all but one answer something else.
const MAX_MESSAGES: usize = 8;

/// A server that is asked by streams.
pub(super) struct Streams {
    pub(super) way: Way,
    /// A stream for the next question, and when it was used last.
    kept: Mutex<Option<(Io, Instant)>>,
    room: Semaphore,
}

impl Streams {
    pub(super) fn new(way: Way) -> Streams {
        Streams {
            way,
            kept: Mutex::default(),
            room: Semaphore::new(MAX_STREAMS),
        }
    }

    fn kept(&self) -> Option<Io> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.filter(|(_, used)| used.elapsed() < MAX_AGE)
            .map(|(stream, _)| stream)
    }

    pub(super) async fn exchange(&self, question: &Question) -> Result<Answer, Error> {
        // What is needed for an answer that others wait for must not wait for them.
        let _room = match roads::is_needed() {
            true => None,
            false => self.room.acquire().await.ok(),
        };
        let mut form = Form {
            padded: self.way.tls.is_some(),
            ..Form::default()
        };
        loop {
            form.id = u16::from_be_bytes(random::bytes()?);
            match self.once(question, form).await? {
                Reply::Answer(answer) => return Ok(answer),
                Reply::TooNew if !form.plain => form.plain = true,
                Reply::Refused(_) => return Err(Error::protocol("DNS", "the server has no answer")),
                _ => return Err(Error::protocol("DNS", "an answer to something else")),
            }
        }
    }

    async fn once(&self, question: &Question, form: Form) -> Result<Reply, Error> {
        let bytes = question.encode(form).ok_or(Error::protocol("DNS", "no such name"))?;
        let read = |bytes: &[u8]| question.read(form, bytes);
        if let Some(mut stream) = self.kept()
            && let Ok(reply) = converse(&mut stream, &bytes, read).await
        {
            self.keep(stream);
            return Ok(reply);
        }
        let mut stream = Io(self.way.stream().await?);
        let reply = converse(&mut stream, &bytes, read).await?;
        self.keep(stream);
        Ok(reply)
    }

    fn keep(&self, stream: Io) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((stream, Instant::now()));
    }
}

/// Sends one question and reads up to its answer.
async fn converse(stream: &mut Io, question: &[u8], read: impl Fn(&[u8]) -> Reply) -> Result<Reply, Error> {
    let len = u16::try_from(question.len()).map_err(|_| Error::protocol("DNS", "no such name"))?;
    stream.write_all(&[&len.to_be_bytes(), question].concat()).await?;
    stream.flush().await?;
    for _ in 0..MAX_MESSAGES {
        let mut answer = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut answer).await?;
        match read(&answer) {
            Reply::Foreign => {}
            reply => return Ok(reply),
        }
    }
    Err(Error::protocol("DNS", "answers to something else"))
}

impl Exchange for Streams {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        Box::pin(roads::inherit(async move { self.exchange(&question).await }))
    }
}
