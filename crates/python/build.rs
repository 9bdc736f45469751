//! Tells the crate for which Python it is built.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
