//! A made-up HTTP request and response in front of a raw connection: the `http` header of the transport raw.

use std::cell::Cell;
use std::ops::Range;

use sealway_v2ray::Step;
use sealway_v2ray::http::front::{self, Refusal};

use super::{Accepted, Arrival, Dial, Transport};
use crate::clock::unix_time;
use crate::error::{Error, Pending};
use crate::layer::{Framing, Opened};
use crate::random;
use crate::settings;
use crate::stream::Stream;

/// The `http` header.
pub(super) struct Front {
    settings: settings::Front,
}

impl Front {
    pub(super) fn new(settings: settings::Front) -> Self {
        Front { settings }
    }

    /// Takes the request off the stream, and has the response leave together with the first bytes.
    async fn answer(&self, stream: &mut Stream) -> Result<(), Error> {
        let request = &self.settings.request;
        let read = stream.read(|bytes| {
            Ok::<_, Error>(match request.accept(bytes) {
                Ok(step) => step.map(|()| Ok(())),
                Err(refusal) => Step::Done {
                    value: Err(refusal),
                    used: 0,
                },
            })
        });
        if let Err(refusal) = read.await? {
            stream.leave(&refusal.reply(unix_time())).await;
            return Err(Error::protocol(
                "the http header",
                match refusal {
                    Refusal::NotFound => "the request is for another path",
                    Refusal::BadRequest => "what came is no request",
                },
            ));
        }
        let drawn = drawn()?;
        stream.set_prefix(self.settings.response.write(unix_time(), &mut |n| drawn.below(n)));
        // Whoever knows the path and then is no user hears what a web server says to a request that it does not understand.
        stream.set_farewell(Refusal::BadRequest.reply(unix_time()));
        // What came behind the head is read as if it arrived now: the protocol may be waiting there as a whole.
        if !stream.payload().is_empty() {
            stream.unread(&[])?;
        }
        Ok(())
    }
}

/// Random numbers for the parts of one head: SplitMix64, begun anew for each.
struct Drawn(Cell<u64>);

fn drawn() -> Result<Drawn, Error> {
    Ok(Drawn(Cell::new(u64::from_le_bytes(random::bytes()?))))
}

impl Drawn {
    /// The next one. The lists are short, so that what dividing leaves over is next to nothing.
    fn below(&self, n: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % n.max(1) as u64) as usize
    }
}

impl Transport for Front {
    /// As without a header.
    fn alpn(&self) -> &'static str {
        ""
    }

    fn accept<'a>(&'a self, mut accepted: Accepted) -> Pending<'a, Arrival> {
        Box::pin(async move {
            self.answer(&mut accepted.stream).await?;
            Ok(Arrival::One(Box::new(accepted)))
        })
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move {
            let mut stream = dial.alone().await?;
            let drawn = drawn()?;
            stream.set_prefix(self.settings.request.write(&mut |n| drawn.below(n)));
            stream.set_framing(Box::new(Skip));
            Ok((stream, 0))
        })
    }
}

/// The response, after which bytes follow as they are. What we send is left as it is.
struct Skip;

impl Framing for Skip {
    fn max_header(&self) -> usize {
        0
    }

    fn header(&self, _: usize) -> usize {
        0
    }

    fn seal(&mut self, _: &mut Vec<u8>, _: usize, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn close(&mut self, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }

    fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>, _: &mut Vec<u8>) -> Result<Opened, Error> {
        match front::skip_response(&buffer[input.clone()])? {
            Step::More(_) => Ok(Opened::default()),
            Step::Done { used, .. } => {
                let rest = input.start + used..input.end;
                let produced = rest.len();
                buffer.copy_within(rest, out);
                Ok(Opened {
                    consumed: input.len(),
                    produced,
                    end: false,
                    through: true,
                })
            }
        }
    }

    fn can_half_close(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many parts a head has, each of them varies.
    #[test]
    fn every_part_of_a_long_head_is_drawn() {
        let heads: Vec<Vec<usize>> = (0..64_u64)
            .map(|seed| {
                let drawn = Drawn(Cell::new(seed << 32));
                (0..200).map(|_| drawn.below(16)).collect()
            })
            .collect();
        for part in 0..200 {
            let mut seen: Vec<usize> = heads.iter().map(|head| head[part]).collect();
            seen.sort_unstable();
            seen.dedup();
            assert!(seen.len() > 8, "part {part} is one of {seen:?}");
        }
        assert_eq!(Drawn(Cell::new(7)).below(0), 0);
    }
}
