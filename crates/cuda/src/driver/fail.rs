//! What the driver says went wrong, in our words.

use cudarc::driver::{result, sys};
use sys::CUresult as Code;

use crate::Error;
use crate::error::Place;

/// The version of CUDA whose PTX the kernels are in.
pub(super) const DRIVER: (u32, u32) = (12, 0);

/// The least compute capability that the kernels are for.
pub(super) const COMPUTE: (u32, u32) = (7, 5);

/// What a call asks for that needs memory of the driver's own; how much is not known.
pub(super) const OWN_MEMORY: Option<(usize, Place)> = Some((0, Place::Device));

/// The result of a call as an error.
pub(super) fn checked(doing: &'static str, code: sys::CUresult) -> Result<(), Error> {
    code.result().map_err(|error| failure(doing, error, None))
}

/// A call that was not made, because it would have reached outside what the device gave out.
pub(super) fn refused(doing: &'static str) -> Error {
    Error::Device {
        doing,
        code: Code::CUDA_ERROR_INVALID_VALUE as u32,
        name: "outside what the device gave out".into(),
        lost: false,
    }
}

/// What the driver said, with what was asked for if it was memory.
pub(super) fn failure(doing: &'static str, error: result::DriverError, asked: Option<(usize, Place)>) -> Error {
    let code = error.0;
    match (code, asked) {
        (Code::CUDA_ERROR_OUT_OF_MEMORY, Some((asked, place))) => Error::OutOfMemory { asked, place },
        // A stub comes with the toolkit, so that programs can be linked where there is no driver.
        (Code::CUDA_ERROR_STUB_LIBRARY, _) => Error::NoDriver,
        (Code::CUDA_ERROR_NO_DEVICE, _) => Error::NoDevice,
        (Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, _) => Error::DriverTooOld {
            have: (0, 0),
            need: DRIVER,
        },
        _ => Error::Device {
            doing,
            code: code as u32,
            name: name_of(error),
            lost: is_lost(code),
        },
    }
}

fn name_of(error: result::DriverError) -> String {
    match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => "an error without a name".into(),
    }
}

/// True for what leaves the context unusable: the documentation of each says that the process must end before CUDA can be
/// used again, or that the device is gone.
const fn is_lost(code: sys::CUresult) -> bool {
    matches!(
        code,
        Code::CUDA_ERROR_DEINITIALIZED
            | Code::CUDA_ERROR_INVALID_CONTEXT
            | Code::CUDA_ERROR_ECC_UNCORRECTABLE
            | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | Code::CUDA_ERROR_CONTAINED
            | Code::CUDA_ERROR_ILLEGAL_ADDRESS
            | Code::CUDA_ERROR_LAUNCH_TIMEOUT
            | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | Code::CUDA_ERROR_ASSERT
            | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
            | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | Code::CUDA_ERROR_MISALIGNED_ADDRESS
            | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | Code::CUDA_ERROR_INVALID_PC
            | Code::CUDA_ERROR_LAUNCH_FAILED
            | Code::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | Code::CUDA_ERROR_SYSTEM_NOT_READY
            | Code::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | Code::CUDA_ERROR_EXTERNAL_DEVICE
            | Code::CUDA_ERROR_UNKNOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // `failure` with other codes asks the driver for a name, and so needs one.
    #[test]
    fn codes_become_what_a_user_can_act_on() {
        let failed = |code, asked| failure("x", result::DriverError(code), asked);
        assert_eq!(
            failed(Code::CUDA_ERROR_OUT_OF_MEMORY, Some((7, Place::Device))),
            Error::OutOfMemory {
                asked: 7,
                place: Place::Device
            }
        );
        assert_eq!(failed(Code::CUDA_ERROR_STUB_LIBRARY, None), Error::NoDriver);
        assert_eq!(failed(Code::CUDA_ERROR_NO_DEVICE, None), Error::NoDevice);
        assert!(matches!(
            failed(Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, None),
            Error::DriverTooOld { need: (12, 0), .. }
        ));
        assert!(is_lost(Code::CUDA_ERROR_ILLEGAL_ADDRESS) && !is_lost(Code::CUDA_ERROR_OUT_OF_MEMORY));
        assert_eq!(checked("x", Code::CUDA_SUCCESS), Ok(()));
    }
}
