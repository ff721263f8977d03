//! The far host of a run on two: sink and servers for whoever has the token.
//!
//! It starts the stacks of [`Stack::ALL`] by their names and nothing else, one at a time, with configurations made here. A server takes all
//! it is asked for to the sink, and the sink serves streams that were announced, from the client's address only.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::talk::{Answer, Ask, Look, Opened, Seen, Usage};
use super::traffic::{Planned, Sink, Traffic};
use crate::remote::{self, Event, Job, RemoteError, Token};
use crate::result::{Num, Responder};
use crate::route::{Engine, Route, Stack};
use crate::run::CellError;
use crate::workload;

/// Serves the clients that come to `listener` and have the token, one after the other, until `stopped` says so; `program` is the program
/// `sealway`.
///
/// # Errors
/// As [`remote::serve`].
pub fn respond(
    listener: &TcpListener,
    token: &Token,
    program: &Path,
    tell: &(dyn Fn(Event) + Sync),
    stopped: &dyn Fn() -> bool,
) -> Result<(), RemoteError> {
    let responder = Responder {
        sealway: crate::run::version(),
        machine: workload::this_machine(),
        rtt_s: Num::default(),
    };
    let begin = |local, guest| Far::new(program, local, guest);
    remote::serve(listener, token, &responder, &begin, tell, stopped)
}

/// Most streams at once.
const MAX_STREAMS: usize = 16;

/// The job of a responder.
#[derive(Debug)]
struct Far {
    /// The program `sealway`.
    program: PathBuf,
    /// Where it listens, and for whom.
    local: IpAddr,
    guest: IpAddr,
    began: Instant,
    line: Option<Line>,
}

/// A server with the sink behind it. Clients of streams first: they end before what they stand on.
#[derive(Debug)]
struct Line {
    traffic: Option<Traffic>,
    route: Route,
    sink: Sink,
}

impl Far {
    /// For a client at `guest`, who reached this host at `local`; `program` is the program `sealway`.
    fn new(program: &Path, local: IpAddr, guest: IpAddr) -> Far {
        Far {
            program: program.to_owned(),
            local,
            guest,
            began: Instant::now(),
            line: None,
        }
    }

    fn do_it(&mut self, ask: Ask) -> Result<Answer, CellError> {
        match ask {
            Ask::Open { stack } => self.open(&stack).map(Answer::Opened),
            Ask::Begin { streams } => self.begin(&streams).map(|()| Answer::Done),
            Ask::Look(look) => self.look(&look).map(Answer::Seen),
            Ask::Close => {
                self.line = None;
                Ok(Answer::Done)
            }
        }
    }

    fn open(&mut self, name: &str) -> Result<Opened, CellError> {
        // Two at a time would be one too many.
        self.line = None;
        let stack = Stack::named(name).ok_or_else(|| CellError::unavailable("there is no stack of that name here"))?;
        remote_stack(&stack)?;
        let listen = |error| CellError::failed(format_args!("cannot listen: {error}"));
        let (route, sink, server) = if stack.has_wire() {
            let sink = Sink::open_at(Ipv4Addr::LOCALHOST.into(), None).map_err(listen)?;
            let engine = Engine::sealway(&self.program);
            let (route, served) = Route::serve(&stack, &engine, self.local, sink.address())?;
            (route, sink, Some(served))
        } else {
            let sink = Sink::open_at(self.local, Some(self.guest)).map_err(listen)?;
            (Route::direct(sink.address()), sink, None)
        };
        let opened = Opened {
            sink: sink.address().port(),
            server,
        };
        self.line = Some(Line {
            traffic: None,
            route,
            sink,
        });
        Ok(opened)
    }

    fn line(&mut self) -> Result<&mut Line, CellError> {
        let nothing = || CellError::failed("nothing is open here");
        self.line.as_mut().ok_or_else(nothing)
    }

    fn begin(&mut self, streams: &[Planned]) -> Result<(), CellError> {
        if streams.len() > MAX_STREAMS {
            return Err(CellError::unavailable(format_args!(
                "more than {MAX_STREAMS} streams at once"
            )));
        }
        let line = self.line()?;
        line.traffic = Some(Traffic::far(&line.sink, streams));
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Result<Seen, CellError> {
        let began = self.began;
        let line = self.line()?;
        let route = &line.route;
        let nothing = || CellError::failed("no stream was begun here");
        let traffic = line.traffic.as_mut().ok_or_else(nothing)?;
        if look.stop {
            traffic.stop();
        }
        traffic.learn(&look.states);
        if look.reset {
            route.reset_memory();
        }
        let (open, ended) = traffic.ends();
        let cpu = route.cpu()?;
        // Clock and counts are read side by side: a rate is made of both.
        let at_ns = nanos(began.elapsed());
        let states = traffic.states();
        let memory = route.memory()?;
        let server = cpu.first().zip(memory.first());
        Ok(Seen {
            at_ns,
            states,
            open,
            trouble: ended.err(),
            server: server.map(|((_, cpu), (_, memory))| Usage {
                cpu_ns: nanos(*cpu),
                memory: memory.peak,
            }),
        })
    }
}

impl Job for Far {
    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        let ask = serde_json::from_slice(message).map_err(|_| CellError::failed("that is no question of this version"));
        let answer = ask.and_then(|ask| self.do_it(ask)).unwrap_or_else(Answer::from);
        // All there is in an answer can be written.
        serde_json::to_vec(&answer).unwrap_or_default()
    }
}

/// Answers questions, one a line, but those that would start a program: for the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn answers(questions: &[u8]) {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut far = Far::new(Path::new("/nowhere/sealway"), loopback, loopback);
    let starts = |ask: Ask| match ask {
        Ask::Open { stack } => Stack::named(&stack).is_some_and(|stack| stack.has_programs()),
        _ => false,
    };
    for question in questions.split(|byte| *byte == b'\n') {
        if !serde_json::from_slice(question).is_ok_and(starts) {
            let answer = far.answer(question);
            assert!(answer.len() <= remote::MAX_MESSAGE);
            assert!(serde_json::from_slice::<Answer>(&answer).is_ok());
        }
    }
}

/// Whether a stack can be measured between two hosts.
pub(super) fn remote_stack(stack: &Stack) -> Result<(), CellError> {
    match stack.needs_nginx() {
        true => Err(CellError::unavailable(format_args!(
            "{stack} has nginx in it, which is measured on one host only"
        ))),
        false => Ok(()),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::transports::traffic::{Direction, Order};

    fn far() -> Far {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Far::new(Path::new("/nowhere/sealway"), loopback, loopback)
    }

    fn answer(far: &mut Far, question: &[u8]) -> Answer {
        serde_json::from_slice(&far.answer(question)).unwrap()
    }

    fn asked(far: &mut Far, question: &Ask) -> Answer {
        answer(far, &serde_json::to_vec(question).unwrap())
    }

    fn is_refused(answer: &Answer) -> bool {
        matches!(answer, Answer::Refused { .. })
    }

    fn open(name: &str) -> Ask {
        Ask::Open { stack: name.to_owned() }
    }

    #[test]
    fn only_what_the_catalogue_has_is_opened() {
        let mut far = far();
        for name in [
            "",
            "vless",
            "/bin/sh",
            "../relay",
            "front-path",
            "front-sni",
            "direct\0",
        ] {
            let answer = asked(&mut far, &open(name));
            let Answer::Refused { unavailable: true, .. } = answer else {
                panic!("{name}: {answer:?}")
            };
        }
        // The program that it would start is not there, which is no fault of the name.
        let answer = asked(&mut far, &open("vless-tcp"));
        assert!(
            matches!(answer, Answer::Refused { unavailable: false, .. }),
            "{answer:?}"
        );
        assert!(matches!(asked(&mut far, &open("direct")), Answer::Opened(_)));
    }

    #[test]
    fn questions_out_of_order_are_refused() {
        let mut far = far();
        let begin = |count| Ask::Begin {
            streams: Planned::of(&vec![Order::endless(Direction::Up); count]).unwrap(),
        };
        let look = || Ask::Look(Look::default());
        assert!(is_refused(&asked(&mut far, &begin(1))));
        assert!(is_refused(&asked(&mut far, &look())));
        assert!(matches!(asked(&mut far, &open("direct")), Answer::Opened(_)));
        assert!(is_refused(&asked(&mut far, &look())));
        assert!(is_refused(&asked(&mut far, &begin(MAX_STREAMS + 1))));
        assert_eq!(asked(&mut far, &begin(MAX_STREAMS)), Answer::Done);
        let Answer::Seen(seen) = asked(&mut far, &look()) else {
            panic!()
        };
        assert_eq!(
            (seen.states.len(), seen.open, seen.server),
            (MAX_STREAMS, MAX_STREAMS, None)
        );
        assert_eq!(asked(&mut far, &Ask::Close), Answer::Done);
        assert!(is_refused(&asked(&mut far, &look())));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        let mut far = far();
        for text in [
            "",
            "{}",
            "null",
            "\"close\" \"close\"",
            "{\"open\":{}}",
            "{\"open\":{\"stack\":1}}",
            "{\"open\":{\"stack\":\"direct\",\"program\":\"/bin/sh\"}}",
            "{\"run\":{\"program\":\"/bin/sh\"}}",
            "{\"begin\":{\"streams\":[{\"key\":-1}]}}",
            "{\"look\":{\"states\":[],\"stop\":2}}",
        ] {
            assert!(is_refused(&answer(&mut far, text.as_bytes())), "{text}");
        }
        assert!(
            is_refused(&answer(&mut far, &[b'['; 60_000])),
            "deeper than a parser should go"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_bytes_have_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..80_usize) {
            let mut far = far();
            prop_assert!(is_refused(&answer(&mut far, &bytes)) || bytes == b"\"close\"");
            let whole = serde_json::to_vec(&open("front-path")).unwrap();
            prop_assert!(is_refused(&answer(&mut far, &whole[..cut.min(whole.len())])));
        }
    }
}
