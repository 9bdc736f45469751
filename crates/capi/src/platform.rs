//! The builds that are refused.
//!
//! It depends on nothing, so that a test compiles it alone.

#[cfg(panic = "abort")]
compile_error!(
    "libcorvid reports panics as errors, so it cannot be built with panic = \"abort\": \
     use the profile `bindings` (cargo build --profile bindings -p corvid-capi)"
);

#[cfg(not(target_pointer_width = "64"))]
compile_error!("libcorvid is for 64-bit systems: the structs of typed rows have 64-bit places");
