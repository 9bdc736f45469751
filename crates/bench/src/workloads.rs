//! The registry: every workload, one file each, in the order in which they are measured.

use crate::workload::Workload;

mod compact;
mod condition_change;
mod conditions;
mod durable;
mod fairness;
mod growth;
mod half_load;
mod herd;
mod idle;
mod insert;
mod load;
mod monitored;
mod partial;
mod pipelined;
mod ports;
mod processes;
mod queue;
mod replay;
mod size;
mod stall;
mod strings;
mod update1;
mod update2;

/// All of them. A new one adds its `mod` line above and its line here.
pub(crate) const ALL: &[&dyn Workload] = &[
    &insert::Insert,
    &update1::Update1,
    &update2::Update2,
    &pipelined::Pipelined,
    &monitored::Monitored,
    &durable::Durable,
    &queue::Queue,
    &size::Size,
    &ports::Ports,
    &ports::PortsAlone,
    &processes::Processes,
    &growth::Growth,
    &partial::Partial,
    &load::Load,
    &replay::Replay,
    &compact::Compact,
    &stall::Stall,
    &strings::Strings,
    &herd::Herd,
    &fairness::Fairness,
    &half_load::HalfLoad,
    &conditions::Conditions,
    &condition_change::ConditionChange,
    &idle::Idle,
];

/// The workload of that name.
pub(crate) fn find(name: &str) -> Result<&'static dyn Workload, String> {
    let found = ALL.iter().find(|workload| workload.name() == name);
    found
        .copied()
        .ok_or_else(|| format!("{name} is no workload; `corvid-bench list` names them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for workload in ALL {
            let same = ALL.iter().filter(|other| other.name() == workload.name());
            assert_eq!(same.count(), 1, "{}", workload.name());
        }
    }
}
