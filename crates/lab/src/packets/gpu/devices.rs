//! The GPUs of a machine, and who works on which.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use sealway_cuda::{DeviceInfo, Engine, Error, Options};

use crate::workload::LabError;

/// Opens an engine on the GPU that its options name.
pub(crate) type Open = Arc<dyn Fn(Options) -> Result<Engine, Error> + Send + Sync>;

/// Options of an engine that costs nothing, on a GPU of this number.
fn least(device: u32) -> Options {
    Options {
        device,
        slots: 1,
        chunk_bytes: 4096,
        chunks: 1,
        ..Options::default()
    }
}

/// Opens the GPUs of this machine. Each is kept open as long as this is, so that kernels are loaded once and not in every window.
pub(crate) fn here() -> Open {
    let kept: Mutex<HashMap<u32, Engine>> = Mutex::default();
    Arc::new(move |options: Options| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Vacant(place) = kept.entry(options.device) {
            place.insert(Engine::open(least(options.device))?);
        }
        drop(kept);
        Engine::open(options)
    })
}

/// The GPUs of a machine that will do. Threads take them in turn, so what one thread measures is on the first.
#[derive(Clone)]
pub(crate) struct Gpus {
    open: Open,
    /// The number of each, and what it is; at least one.
    devices: Vec<(u32, DeviceInfo)>,
}

impl Gpus {
    /// Opens each once, up to the first number that there is not. One that is too old for the kernels is left out.
    ///
    /// # Errors
    /// [`LabError::NoDevice`] if none will do, [`LabError::Device`] if one is there and does not work.
    pub(crate) fn find(open: Open) -> Result<Self, LabError> {
        let (mut devices, mut none) = (Vec::new(), Error::NoDevice);
        for device in 0.. {
            match open(least(device)) {
                Ok(engine) => devices.push((device, engine.device().clone())),
                Err(Error::NoSuchDevice { .. }) => break,
                Err(error @ Error::TooOldDevice { .. }) => none = error,
                Err(error) => return Err(said(device, &error)),
            }
        }
        if devices.is_empty() {
            return Err(said(0, &none));
        }
        Ok(Gpus { open, devices })
    }

    /// Such as `open` opens, without a look at them.
    #[cfg(test)]
    pub(crate) fn unseen(open: &Open, count: u32) -> Self {
        Gpus {
            open: Arc::clone(open),
            devices: (0..count).map(|device| (device, DeviceInfo::named("unseen"))).collect(),
        }
    }

    /// An engine on the GPU of a thread, whatever number the options have.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn open(&self, thread: usize, options: Options) -> Result<Engine, Error> {
        let (device, _) = self.devices[thread % self.devices.len()];
        (self.open)(Options { device, ..options })
    }

    /// An engine on the first.
    ///
    /// # Errors
    /// As [`Gpus::find`].
    pub(crate) fn open_first(&self, options: Options) -> Result<Engine, LabError> {
        let (device, _) = self.devices[0];
        self.open(0, options).map_err(|error| said(device, &error))
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.devices.len()
    }

    /// The first in words.
    pub(crate) fn first(&self) -> String {
        self.devices[0].1.to_string()
    }

    /// All of them in words, those that are alike together.
    pub(crate) fn all(&self) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for (_, device) in &self.devices {
            let name = device.to_string();
            match kinds.iter_mut().find(|(kind, _)| *kind == name) {
                Some((_, count)) => *count += 1,
                None => kinds.push((name, 1)),
            }
        }
        let told = kinds.into_iter().map(|(name, count)| match count {
            1 => name,
            _ => format!("{count} x {name}"),
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Whether there is nothing to measure, or something that should work and does not: the GPU of this number.
fn said(device: u32, error: &Error) -> LabError {
    match error {
        Error::NoDriver | Error::NoDevice | Error::DriverTooOld { .. } | Error::TooOldDevice { .. } => {
            LabError::NoDevice { why: error.to_string() }
        }
        _ => LabError::Device {
            why: format!("{error} (number {device}; CUDA_VISIBLE_DEVICES can leave it out)"),
        },
    }
}

/// Whether there is a device to measure, or one that should work and does not.
pub(crate) fn is_there() -> bool {
    !matches!(Gpus::find(here()), Err(LabError::NoDevice { .. }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Opened, fakes};
    use super::*;

    /// Devices of which the second is too old.
    fn mixed(count: u32) -> (Open, Opened) {
        let (open, opened) = fakes(count);
        let mixed: Open = Arc::new(move |options: Options| match options.device {
            1 => Err(Error::TooOldDevice {
                have: (5, 0),
                need: (7, 5),
            }),
            _ => open(options),
        });
        (mixed, opened)
    }

    #[test]
    fn threads_take_those_that_will_do_in_turn() {
        let (open, opened) = mixed(4);
        let gpus = Gpus::find(open).unwrap();
        assert_eq!(gpus.count(), 3);
        opened.lock().unwrap().clear();
        for thread in 0..5 {
            let anywhere = Options { device: 1, ..least(0) };
            gpus.open(thread, anywhere).unwrap();
        }
        let numbers: Vec<u32> = opened.lock().unwrap().iter().map(|(device, _)| *device).collect();
        assert_eq!(numbers, [0, 2, 3, 0, 2]);
    }

    #[test]
    fn those_that_are_alike_are_told_together() {
        let names = |count| Gpus::find(fakes(count).0).unwrap().all();
        assert_eq!(names(3), format!("3 x {}", names(1)));
        let mut gpus = Gpus::unseen(&fakes(1).0, 3);
        gpus.devices[1].1 = DeviceInfo::named("other");
        assert_eq!(gpus.all(), format!("2 x {}, {}", gpus.first(), gpus.devices[1].1));
    }

    #[test]
    fn one_that_does_not_work_is_no_missing_one() {
        let with = |error: Error| {
            let open: Open = Arc::new(move |options: Options| match options.device {
                0 => Err(error.clone()),
                ordinal => Err(Error::NoSuchDevice { ordinal, devices: 1 }),
            });
            Gpus::find(open).err().unwrap()
        };
        let old = Error::TooOldDevice {
            have: (5, 0),
            need: (7, 5),
        };
        for none in [Error::NoDriver, Error::NoDevice, old] {
            let why = none.to_string();
            assert!(matches!(with(none), LabError::NoDevice { why: said } if said == why));
        }
        assert!(matches!(with(Error::Lost), LabError::Device { why } if why.contains("number 0;")));
    }
}
