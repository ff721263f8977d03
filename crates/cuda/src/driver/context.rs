//! Finding the driver and its devices, and making one ready.

use std::ffi::{CStr, CString};

use cudarc::driver::{result, sys};
use sys::CUdevice_attribute as Attribute;

use crate::Error;
use crate::device::DeviceInfo;

use super::fail::{COMPUTE, DRIVER, OWN_MEMORY, checked, failure};

/// How many of [`CALLS`] it takes to ask for the driver's version.
const FIRST: usize = 3;

/// Every call that is made of the driver. One that is missing would be a panic, so they are looked for first. Drivers have had the
/// first ones from the beginning.
const CALLS: [&str; 33] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemsetD8Async",
    "cuLaunchKernel",
];

/// The devices that the driver sees, whether they will do or not.
///
/// # Errors
/// [`Error::NoDriver`] where there is no driver, [`Error::NoDevice`] where it sees none; other errors of the driver.
pub fn probe() -> Result<Vec<DeviceInfo>, Error> {
    let (driver, devices) = start()?;
    (0..devices)
        .map(|ordinal| info(handle(ordinal)?, ordinal, driver))
        .collect()
}

/// Loads the driver; gives the version of CUDA that it is for and the number of devices.
fn start() -> Result<((u32, u32), u32), Error> {
    // SAFETY: loading the library of the driver runs its initialisers, which are NVIDIA's. Every later call would panic
    // without the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    has_all(&CALLS[..FIRST])?;
    result::init().map_err(|error| failure("starting the driver", error, None))?;
    let mut version = 0;
    // SAFETY: the call writes the number it is given a place for.
    checked("asking for the driver's version", unsafe {
        sys::cuDriverGetVersion(&mut version)
    })?;
    let version = version.unsigned_abs();
    let version = (version / 1000, version % 1000 / 10);
    has_all(&CALLS).map_err(|lacks| match version < DRIVER {
        true => Error::DriverTooOld {
            have: version,
            need: DRIVER,
        },
        false => lacks,
    })?;
    let devices = result::device::get_count().map_err(|error| failure("counting devices", error, None))?;
    if devices < 1 {
        return Err(Error::NoDevice);
    }
    Ok((version, devices.unsigned_abs()))
}

/// Looks for calls in the library, which must be there.
fn has_all(calls: &[&str]) -> Result<(), Error> {
    // SAFETY: the library is there; this panics where it is not.
    let library = unsafe { sys::culib() };
    // SAFETY: a name is looked up, and nothing of what it stands for is called.
    let lacks = |name: &&&str| unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err();
    match calls.iter().find(lacks) {
        None => Ok(()),
        Some(name) => Err(Error::Device {
            doing: "loading the driver",
            code: 0,
            name: format!("its library has no {name}; install the driver again"),
            lost: false,
        }),
    }
}

fn handle(ordinal: u32) -> Result<sys::CUdevice, Error> {
    result::device::get(ordinal.cast_signed()).map_err(|error| failure("finding the device", error, None))
}

fn info(device: sys::CUdevice, ordinal: u32, driver: (u32, u32)) -> Result<DeviceInfo, Error> {
    let attribute = |which| {
        // SAFETY: the device is one that the driver gave.
        unsafe { result::device::get_attribute(device, which) }
            .map(i32::unsigned_abs)
            .map_err(|error| failure("asking what the device is", error, None))
    };
    // SAFETY: the device is one that the driver gave.
    let memory = unsafe { result::device::total_mem(device) }
        .map_err(|error| failure("asking for the device's memory", error, None))?;
    Ok(DeviceInfo {
        ordinal,
        name: result::device::get_name(device).map_err(|error| failure("asking for the device's name", error, None))?,
        // Only to tell devices apart: a driver that does not say is good enough.
        pci: match place(device) {
            Err(error) if !error.is_lost() => String::new(),
            place => place?,
        },
        compute: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory as u64,
        copy_engines: attribute(Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        driver,
    })
}

/// Where a device is on the PCI bus, as the driver writes it.
fn place(device: sys::CUdevice) -> Result<String, Error> {
    // The driver asks for room for 13 bytes; a longer domain has room too. The last byte stays zero.
    let mut text = [0_u8; 32];
    let room = (text.len() - 1) as i32;
    // SAFETY: the call writes at most as many bytes as it is told that there is room for.
    checked("asking for the device's place", unsafe {
        sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), room, device)
    })?;
    Ok(CStr::from_bytes_until_nul(&text).map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned()))
}

/// A device's primary context, which everything in the process shares, with the kernels loaded into it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) info: DeviceInfo,
    device: sys::CUdevice,
    raw: sys::CUcontext,
    module: Option<sys::CUmodule>,
}

impl Context {
    pub(super) fn open(ordinal: u32, ptx: &str) -> Result<Self, Error> {
        let (driver, devices) = start()?;
        if driver < DRIVER {
            return Err(Error::DriverTooOld {
                have: driver,
                need: DRIVER,
            });
        }
        if ordinal >= devices {
            return Err(Error::NoSuchDevice { ordinal, devices });
        }
        let device = handle(ordinal)?;
        let info = info(device, ordinal, driver)?;
        if info.compute < COMPUTE {
            return Err(Error::TooOldDevice {
                have: info.compute,
                need: COMPUTE,
            });
        }
        // SAFETY: the device is one that the driver gave.
        let raw = unsafe { result::primary_ctx::retain(device) }
            .map_err(|error| failure("opening the device", error, OWN_MEMORY))?;
        // From here on, dropping it lets the context go.
        let mut context = Context {
            info,
            device,
            raw,
            module: None,
        };
        context.bind()?;
        context.module = Some(load(ptx, driver)?);
        Ok(context)
    }

    /// Makes the context that of this thread.
    pub(super) fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context was retained when this was made and is released when it is dropped.
        unsafe { result::ctx::set_current(self.raw) }
            .map_err(|error| failure("binding the device to a thread", error, None))
    }

    /// A kernel by name.
    pub(super) fn function(&self, name: &str) -> Result<sys::CUfunction, Error> {
        let missing = || Error::Device {
            doing: "finding a kernel",
            code: 0,
            name: name.into(),
            lost: false,
        };
        let (Some(module), Ok(text)) = (self.module, CString::new(name)) else {
            return Err(missing());
        };
        // SAFETY: the module is loaded until this is dropped.
        unsafe { result::module::get_function(module, text) }.map_err(|error| failure("finding a kernel", error, None))
    }
}

fn load(ptx: &str, driver: (u32, u32)) -> Result<sys::CUmodule, Error> {
    let text = CString::new(ptx).map_err(|_| Error::Device {
        doing: "loading the kernels",
        code: 0,
        name: "a zero in their text".into(),
        lost: false,
    })?;
    // SAFETY: the text ends with a zero, and is read during the call only.
    unsafe { result::module::load_data(text.as_ptr().cast()) }.map_err(|error| {
        match failure("loading the kernels", error, OWN_MEMORY) {
            Error::DriverTooOld { need, .. } => Error::DriverTooOld { have: driver, need },
            error => error,
        }
    })
}

impl Drop for Context {
    fn drop(&mut self) {
        let _ = self.bind();
        if let Some(module) = self.module.take() {
            // SAFETY: loaded here, and `take` gives it once; nothing of it is running, since the driver waits before.
            let _ = unsafe { result::module::unload(module) };
        }
        // A context that is gone must not stay that of this thread. A call may fail with what went wrong before it.
        // SAFETY: no context is a value that the call knows.
        let none = || unsafe { result::ctx::set_current(std::ptr::null_mut()) };
        let _ = none().or_else(|_| none());
        // SAFETY: retained once when this was made.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
