//! Asking a person, for as long as nobody says that all is over.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop_transfer::answer;
use zeroize::Zeroizing;

/// How often somebody who waits for an answer looks whether it is still wanted, in nanoseconds.
const TICK: i64 = 50_000_000;

/// Longest line that is taken.
const LINE: usize = 4096;

/// What was read from standard input and is no answer yet: the next question's, where answers come through a pipe.
static LEFT: LazyLock<Mutex<Zeroizing<Vec<u8>>>> = LazyLock::new(Mutex::default);

/// One line from standard input, without the space around it; empty at its end. Whoever waits holds nothing of standard error,
/// so that others can say something meanwhile.
///
/// # Errors
/// [`Error::Cancelled`] soon after `cancel` was thrown.
pub(super) fn ask(question: &str, cancel: &Cancel) -> Result<Zeroizing<String>, Error> {
    if cancel.is_set() {
        return Err(Error::Cancelled);
    }
    say(question);
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let line = line(&std::io::stdin(), &mut left, cancel);
    if line.is_err() {
        // What is said next does not stand behind the question.
        say("\n");
    }
    line
}

/// A question that is answered by yes or no, asked again while the answer is neither.
///
/// # Errors
/// As [`ask`].
pub(super) fn yes(question: &str, cancel: &Cancel) -> Result<bool, Error> {
    loop {
        if let Some(yes) = answer::yes_or_no(&ask(question, cancel)?) {
            return Ok(yes);
        }
        say("y is yes, n is no\n");
    }
}

pub(super) fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}

/// The next line of `input`, of which `left` was read already.
fn line(input: &impl AsFd, left: &mut Zeroizing<Vec<u8>>, cancel: &Cancel) -> Result<Zeroizing<String>, Error> {
    loop {
        if let Some(end) = left.iter().position(|&byte| byte == b'\n') {
            return Ok(take(left, end + 1));
        }
        if left.len() >= LINE {
            return Ok(take(left, LINE));
        }
        let mut some = Zeroizing::new([0; LINE]);
        let count = read(input, &mut some[..], cancel)?;
        if count == 0 {
            let all = left.len();
            return Ok(take(left, all));
        }
        // Into memory of its own, so that none is given back with a code in it.
        let mut more = Zeroizing::new(Vec::with_capacity(left.len() + count));
        more.extend_from_slice(left);
        more.extend_from_slice(&some[..count]);
        *left = more;
    }
}

/// The next bytes of `input`; none at its end.
pub(super) fn read(input: &impl AsFd, some: &mut [u8], cancel: &Cancel) -> Result<usize, Error> {
    loop {
        if cancel.is_set() {
            return Err(Error::Cancelled);
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK,
        };
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&tick)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => {}
        }
        match rustix::io::read(input, &mut *some) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(count) => return Ok(count),
            Err(_) => return Ok(0),
        }
    }
}

fn take(left: &mut Zeroizing<Vec<u8>>, end: usize) -> Zeroizing<String> {
    let rest = Zeroizing::new(left[end..].to_vec());
    let line = Zeroizing::new(String::from_utf8_lossy(&left[..end]).into_owned());
    *left = rest;
    Zeroizing::new(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_together_answer_one_question_each() {
        let (input, mut output) = std::io::pipe().unwrap();
        output.write_all(b"first\n second \nlast").unwrap();
        drop(output);
        let (mut left, cancel) = (Zeroizing::default(), Cancel::new());
        for expected in ["first", "second", "last", "", ""] {
            assert_eq!(*line(&input, &mut left, &cancel).unwrap(), expected);
        }
    }

    #[test]
    fn who_is_asked_is_let_go() {
        let (input, output) = std::io::pipe().unwrap();
        let cancel = Cancel::new();
        let (of, (told, ended)) = (cancel.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || told.send(line(&input, &mut Zeroizing::default(), &of)));
        assert!(ended.try_recv().is_err());
        cancel.cancel();
        let answer = ended.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert!(matches!(answer, Err(Error::Cancelled)));
        drop(output);
    }
}
