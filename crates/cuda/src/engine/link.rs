//! The link by itself, for measuring what part of it a batch uses.

use crate::Error;

use super::Engine;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ways {
    /// To the device.
    In,
    /// From the device.
    Out,
    /// Both at once, as far as the device does that.
    Both,
}

impl Engine {
    /// Copies the memory of all free chunks so many times, and waits; gives the bytes copied, all ways together. What a chunk
    /// holds goes as it is: nothing is sealed or opened. The caller reads the clock.
    ///
    /// # Errors
    /// [`Error::NotStarted`] if no chunk is free; those of the device.
    pub fn copy_chunks(&mut self, ways: Ways, times: u32) -> Result<u64, Error> {
        self.check_lost()?;
        let mut taken = Vec::new();
        while let Some(chunk) = self.take_chunk()? {
            taken.push(chunk);
        }
        if taken.is_empty() {
            return Err(Error::NotStarted);
        }
        let mut bytes = 0;
        let mut copied = Ok(());
        for &chunk in (0..times).flat_map(|_| &taken) {
            match self.ring[chunk].copy(&mut *self.device, ways) {
                Ok(more) => bytes += more,
                Err(error) => {
                    copied = Err(self.noted(error));
                    break;
                }
            }
        }
        let settled = taken
            .into_iter()
            .map(|chunk| self.settle_chunk(chunk))
            .collect::<Vec<_>>();
        copied?;
        settled.into_iter().collect::<Result<(), _>>()?;
        Ok(bytes)
    }
}
