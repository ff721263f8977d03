//! Batches of jobs: gathered into chunks, and scattered to where their outputs belong.

use std::collections::VecDeque;
use std::ops::Range;

use sealway_aead::batch::{Arenas, Job, Memory, Status};
use sealway_aead::wipe::zero;

use crate::Error;
use crate::error::Stopped;
use crate::plan::{Message, Place};

use super::{Engine, Report, State};

/// How far a batch that was started has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Started {
    /// Jobs that the device has; all of them, unless it failed. [`Engine::finish`] gives their results and the error.
    pub jobs: usize,
}

/// Jobs that went together in a chunk.
#[derive(Debug)]
struct Flight {
    chunk: usize,
    jobs: Range<usize>,
}

/// A batch between its start and its end.
#[derive(Debug, Default)]
pub(super) struct Run {
    jobs: usize,
    kept: VecDeque<Kept>,
    flights: VecDeque<Flight>,
    /// Why there are no more.
    stopped: Option<Error>,
    report: Report,
}

/// Results of a chunk that had to make room for the next before anyone asked for them.
#[derive(Debug)]
struct Kept {
    jobs: Range<usize>,
    /// Opens or not, bytes of output, and what became of it.
    ends: Vec<(bool, usize, Status)>,
    /// The outputs one after another.
    bytes: Vec<u8>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        zero(&mut self.bytes);
    }
}

impl Engine {
    /// Runs every job and puts what became of each into `statuses`, in the order of the jobs; with the meaning of
    /// [`sealway_aead::batch::Engine::run`], for keys of this engine.
    ///
    /// # Errors
    /// [`Stopped`] with the number of jobs that are complete: none if a job breaks a rule ([`Error::Job`]) or there are not
    /// as many statuses as jobs; any number if the device fails. All other jobs are untouched, in place too.
    pub fn run(
        &mut self,
        jobs: &[Job],
        mut memory: Memory<'_>,
        aad: &[u8],
        statuses: &mut [Status],
    ) -> Result<Report, Stopped> {
        check_count(jobs, statuses)?;
        self.admit(jobs, Arenas::of(&memory, aad))?;
        let mut run = Run::default();
        let mut next = 0;
        let mut done = 0;
        while next < jobs.len() {
            let src = match &memory {
                Memory::Separate { src, .. } => src,
                Memory::InPlace(arena) => &**arena,
            };
            match self.depart(&mut run, jobs, &mut next, src, aad) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    run.stopped = Some(error);
                    break;
                }
            }
            // The ring is full. The outputs of a chunk are nobody's inputs, so they may go where they belong.
            match self.arrive(&mut run, jobs, out(&mut memory), statuses) {
                Ok(count) => done += count,
                Err(error) => {
                    self.drop_run(run);
                    return Err(Stopped { done, error });
                }
            }
        }
        self.land(run, jobs, out(&mut memory), statuses, done)
    }

    /// Hands jobs to the device and does not wait for them, as long as the ring has room; then it waits for the first of
    /// them, and keeps their results. All that is needed of `src` and `aad` is copied. A batch that was started before and
    /// not finished is forgotten.
    ///
    /// # Errors
    /// Those of the jobs, and of the device if it has begun none of them.
    pub fn start(&mut self, jobs: &[Job], src: &[u8], aad: &[u8]) -> Result<Started, Error> {
        let arenas = Arenas {
            src: src.len(),
            dst: usize::MAX,
            aad: aad.len(),
            in_place: false,
        };
        self.admit(jobs, arenas)?;
        let mut run = Run {
            jobs: jobs.len(),
            ..Run::default()
        };
        let mut next = 0;
        while next < jobs.len() {
            let error = match self.depart(&mut run, jobs, &mut next, src, aad) {
                Ok(true) => continue,
                Ok(false) => match self.keep(&mut run, jobs) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if run.flights.is_empty() && run.kept.is_empty() {
                self.drop_run(run);
                return Err(error);
            }
            run.stopped = Some(error);
            break;
        }
        self.run = Some(run);
        Ok(Started { jobs: next })
    }

    /// Waits for the jobs that were started and writes their outputs and statuses. `jobs` are those that were started.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for other jobs, [`Error::Job`] if an output ends outside `dst`, [`Error::StatusCount`]: nothing
    /// is written then, and nothing left of what was started. If the device fails, the first jobs may be complete.
    pub fn finish(&mut self, jobs: &[Job], dst: &mut [u8], statuses: &mut [Status]) -> Result<Report, Stopped> {
        let Some(mut run) = self.run.take() else {
            return Err(Error::NotStarted.into());
        };
        if let Err(error) = self.check_finish(&run, jobs, dst, statuses) {
            self.drop_run(run);
            return Err(error.into());
        }
        let mut done = 0;
        for kept in run.kept.drain(..) {
            let mut at = 0;
            for (&(_, len, status), index) in kept.ends.iter().zip(kept.jobs.clone()) {
                dst[jobs[index].output_offset()..][..len].copy_from_slice(&kept.bytes[at..at + len]);
                statuses[index] = status;
                run.report.count(status);
                at += len;
            }
            done = kept.jobs.end;
        }
        self.land(run, jobs, dst, statuses, done)
    }

    /// Waits for all that is under way, after so many complete jobs.
    fn land(
        &mut self,
        mut run: Run,
        jobs: &[Job],
        dst: &mut [u8],
        statuses: &mut [Status],
        mut done: usize,
    ) -> Result<Report, Stopped> {
        let mut stopped = run.stopped.take();
        while !run.flights.is_empty() {
            match self.arrive(&mut run, jobs, dst, statuses) {
                Ok(count) => done += count,
                Err(error) => {
                    stopped = Some(stopped.unwrap_or(error));
                    break;
                }
            }
        }
        let report = self.drop_run(run);
        match stopped {
            Some(error) => Err(Stopped { done, error }),
            None => Ok(report),
        }
    }

    /// Checks everything before anything is touched, and forgets what was started before.
    fn admit(&mut self, jobs: &[Job], arenas: Arenas) -> Result<(), Error> {
        self.check_lost()?;
        self.check(jobs, arenas)?;
        self.check_lengths(jobs)?;
        if let Some(run) = self.run.take() {
            self.drop_run(run);
        }
        self.check_lost()
    }

    fn check_finish(&self, run: &Run, jobs: &[Job], dst: &[u8], statuses: &[Status]) -> Result<(), Error> {
        check_count(jobs, statuses)?;
        if run.jobs != jobs.len() {
            return Err(Error::NotStarted);
        }
        let outside = |job: &Job| job.output_offset() as u64 + job.output_len() as u64 > dst.len() as u64;
        if let Some(index) = jobs.iter().position(outside) {
            let wrong = sealway_aead::JobError::Output.into();
            return Err(Error::Job { index, wrong });
        }
        let kept = run.kept.iter().all(|kept| {
            let ends = kept.ends.iter().map(|&(opens, len, _)| (opens, len));
            ends.eq(jobs[kept.jobs.clone()]
                .iter()
                .map(|job| (job.opens(), job.output_len())))
        });
        let under_way = run.flights.iter().all(|flight| {
            let messages = self.ring[flight.chunk].plan.iter();
            let ends = messages.map(|(message, _)| (message.opens, message.len));
            ends.eq(jobs[flight.jobs.clone()]
                .iter()
                .map(|job| (job.opens(), job.message_len() as u32)))
        });
        if kept && under_way {
            Ok(())
        } else {
            Err(Error::NotStarted)
        }
    }

    /// Fills a chunk with the next jobs and sends it off; false if there is no chunk.
    fn depart(&mut self, run: &mut Run, jobs: &[Job], next: &mut usize, src: &[u8], aad: &[u8]) -> Result<bool, Error> {
        let Some(index) = self.take_chunk()? else {
            // With nothing to wait for, none will ever be free.
            return if run.flights.is_empty() {
                Err(Error::Busy)
            } else {
                Ok(false)
            };
        };
        let chunk = &mut self.ring[index];
        let room = match chunk_input(chunk, &mut *self.device) {
            Ok(room) => room,
            Err(error) => {
                let _ = self.settle_chunk(index);
                return Err(error);
            }
        };
        let first = *next;
        let mut count = 0;
        for job in &jobs[first..] {
            let message = Message::of(job);
            let Some(place) = chunk.plan.push(message) else {
                break;
            };
            gather(job, &message, &place, room, src, aad);
            count += 1;
        }
        match self.submit_chunk(index, &mut run.report) {
            Ok(()) => {
                self.ring[index].state = State::UnderWay;
                let jobs = first..first + count;
                *next = jobs.end;
                run.flights.push_back(Flight { chunk: index, jobs });
                Ok(true)
            }
            Err(error) => {
                let _ = self.settle_chunk(index);
                Err(error)
            }
        }
    }

    /// Waits for the oldest chunk and scatters its outputs; gives the number of jobs. On an error nothing is written.
    fn arrive(&mut self, run: &mut Run, jobs: &[Job], dst: &mut [u8], statuses: &mut [Status]) -> Result<usize, Error> {
        let Some(flight) = run.flights.pop_front() else {
            return Ok(0);
        };
        if let Err(error) = self.wait_chunk(flight.chunk, &mut run.report) {
            let _ = self.settle_chunk(flight.chunk);
            return Err(error);
        }
        let chunk = &mut self.ring[flight.chunk];
        let output = chunk.output(&mut *self.device)?;
        for (number, index) in flight.jobs.clone().enumerate() {
            let (Some((_, place)), Some(job)) = (chunk.get(number), jobs.get(index)) else {
                break;
            };
            let status = chunk.status(output, number);
            let dst = &mut dst[job.output_offset()..][..job.output_len()];
            scatter(job, &place, output, status, dst);
            statuses[index] = status;
            run.report.count(status);
        }
        chunk.state = State::Free;
        Ok(flight.jobs.len())
    }

    /// Waits for the oldest chunk and keeps its outputs.
    fn keep(&mut self, run: &mut Run, jobs: &[Job]) -> Result<(), Error> {
        let Some(flight) = run.flights.pop_front() else {
            return Err(Error::Busy);
        };
        if let Err(error) = self.wait_chunk(flight.chunk, &mut run.report) {
            let _ = self.settle_chunk(flight.chunk);
            // Those after it are complete or not, but no longer the first.
            for later in run.flights.drain(..) {
                let _ = self.settle_chunk(later.chunk);
            }
            return Err(error);
        }
        let chunk = &mut self.ring[flight.chunk];
        let output = chunk.output(&mut *self.device)?;
        let all = &jobs[flight.jobs.clone()];
        let mut kept = Kept {
            jobs: flight.jobs,
            ends: Vec::with_capacity(all.len()),
            bytes: vec![0; all.iter().map(Job::output_len).sum()],
        };
        let mut at = 0;
        for (number, job) in all.iter().enumerate() {
            let Some((_, place)) = chunk.get(number) else {
                break;
            };
            let status = chunk.status(output, number);
            let len = job.output_len();
            scatter(job, &place, output, status, &mut kept.bytes[at..at + len]);
            kept.ends.push((job.opens(), len, status));
            at += len;
        }
        chunk.state = State::Free;
        run.kept.push_back(kept);
        Ok(())
    }

    /// Ends a run: whatever of it is still under way is waited for and forgotten.
    fn drop_run(&mut self, run: Run) -> Report {
        for flight in &run.flights {
            let _ = self.settle_chunk(flight.chunk);
        }
        run.report
    }
}

impl Report {
    pub(crate) fn count(&mut self, status: Status) {
        if status == Status::Done {
            self.done += 1;
        } else {
            self.refused += 1;
        }
    }
}

fn chunk_input<'d>(chunk: &super::Chunk, device: &'d mut dyn crate::device::Device) -> Result<&'d mut [u8], Error> {
    chunk.input(device)
}

/// Bytes that may be written.
fn out<'a>(memory: &'a mut Memory<'_>) -> &'a mut [u8] {
    match memory {
        Memory::Separate { dst, .. } => dst,
        Memory::InPlace(arena) => arena,
    }
}

pub(crate) fn check_count(jobs: &[Job], statuses: &[Status]) -> Result<(), Error> {
    if jobs.len() == statuses.len() {
        return Ok(());
    }
    Err(Error::StatusCount {
        jobs: jobs.len(),
        statuses: statuses.len(),
    })
}

/// Copies what a job reads into a chunk.
#[inline]
fn gather(job: &Job, message: &Message, place: &Place, room: &mut [u8], src: &[u8], aad: &[u8]) {
    let len = job.message_len();
    let input = &src[job.input_offset()..][..job.input_len()];
    room[place.src..place.src + len].copy_from_slice(&input[..len]);
    if message.opens {
        room[place.src_tag..place.src_tag + 16].copy_from_slice(&input[len..]);
    }
    if message.aad_len > 0 {
        let aad = &aad[job.aad()];
        room[place.aad..place.aad + aad.len()].copy_from_slice(aad);
    }
}

/// Copies what a job gives out of a chunk.
#[inline]
fn scatter(job: &Job, place: &Place, output: &[u8], status: Status, dst: &mut [u8]) {
    if status != Status::Done {
        dst.fill(0);
        return;
    }
    let (text, tag) = dst.split_at_mut(job.message_len());
    text.copy_from_slice(&output[place.dst..place.dst + text.len()]);
    tag.copy_from_slice(&output[place.dst_tag..place.dst_tag + tag.len()]);
}
