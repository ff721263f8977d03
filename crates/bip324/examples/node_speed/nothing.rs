//! A device that does nothing and says that all is done: whoever uses it spends what the host spends.

use std::ops::Range;

use sealway_cuda::Error;
use sealway_cuda::device::{Buffer, Device, DeviceInfo, Event, Launch, Pinned, Queue, Span};

/// Every byte that it gives back is 1, which is what a status of done is.
#[derive(Debug)]
pub(crate) struct Nothing {
    info: DeviceInfo,
    pinned: Vec<Vec<u8>>,
}

impl Default for Nothing {
    fn default() -> Self {
        Nothing {
            info: DeviceInfo::named("nothing"),
            pinned: Vec::new(),
        }
    }
}

impl Device for Nothing {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&mut self, _: usize) -> Result<Buffer, Error> {
        Ok(Buffer(0))
    }

    fn free(&mut self, _: Buffer) {}

    fn allocate_pinned(&mut self, bytes: usize) -> Result<Pinned, Error> {
        self.pinned.push(vec![1; bytes]);
        Ok(Pinned(self.pinned.len() as u32 - 1))
    }

    fn free_pinned(&mut self, _: Pinned) {}

    fn pinned(&mut self, pinned: Pinned) -> Result<&mut [u8], Error> {
        Ok(&mut self.pinned[pinned.0 as usize])
    }

    fn pinned_now(&self, pinned: Pinned) -> Option<&[u8]> {
        Some(&self.pinned[pinned.0 as usize])
    }

    fn queue(&mut self) -> Result<Queue, Error> {
        Ok(Queue(0))
    }

    fn event(&mut self, _: bool) -> Result<Event, Error> {
        Ok(Event(0))
    }

    fn copy_in(&mut self, _: Queue, _: Pinned, _: Range<usize>, _: Buffer, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn copy_out(&mut self, _: Queue, span: Span, to: Pinned, at: usize) -> Result<(), Error> {
        self.pinned[to.0 as usize][at..at + span.len].fill(1);
        Ok(())
    }

    fn clear(&mut self, _: Queue, _: Span) -> Result<(), Error> {
        Ok(())
    }

    fn launch(&mut self, _: Queue, _: &Launch) -> Result<(), Error> {
        Ok(())
    }

    fn record(&mut self, _: Queue, _: Event) -> Result<(), Error> {
        Ok(())
    }

    fn queue_wait(&mut self, _: Queue, _: Event) -> Result<(), Error> {
        Ok(())
    }

    fn is_done(&mut self, _: Event) -> Result<bool, Error> {
        Ok(true)
    }

    fn wait(&mut self, _: Event) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&mut self, _: Queue) -> Result<(), Error> {
        Ok(())
    }

    fn elapsed_s(&mut self, _: Event, _: Event) -> Result<f64, Error> {
        Ok(0.0)
    }
}
