//! The registry of all workloads, in the order in which they are measured.

use crate::workload::Workload;

mod cluster_compact;
mod cluster_join;
mod cluster_memory;
mod cluster_transfer;
mod clustered;
mod compact;
mod condition_change;
mod conditions;
mod durable_conditions;
mod fairness;
mod growth;
mod half_load;
mod herd;
mod idle;
mod load;
mod ovn;
mod partial;
mod ports;
mod processes;
mod queue;
mod relay_fan_out;
mod relay_herd;
mod relay_memory;
mod relay_writes;
mod replay;
mod size;
mod stall;
mod steady;
mod strings;

/// All workloads. To add one, add its `mod` line above and a line here.
pub(crate) const ALL: &[&dyn Workload] = &[
    &steady::INSERT,
    &steady::UPDATE1,
    &steady::UPDATE2,
    &steady::PIPELINED,
    &steady::MONITORED,
    &steady::DURABLE,
    &durable_conditions::DurableConditions,
    &queue::Queue,
    &size::Size,
    &ports::Ports,
    &ports::PortsAlone,
    &processes::Processes,
    &OVN,
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
    &clustered::TEN,
    &clustered::HUNDRED,
    &clustered::PIPELINED,
    &clustered::ONE,
    &clustered::SPREAD,
    &clustered::Failover,
    &cluster_transfer::Transfer,
    &cluster_compact::Compact,
    &cluster_join::Join,
    &cluster_memory::MemoryOfMembers,
    &relay_writes::Writes,
    &relay_fan_out::FanOut,
    &relay_memory::MemoryOfRelay,
    &relay_herd::RelayHerd,
];

/// The workload that has its own command.
pub(crate) const OVN: ovn::Ovn = ovn::Ovn;

/// Returns the workload with the given name.
pub(crate) fn find(name: &str) -> Result<&'static dyn Workload, String> {
    let found = ALL.iter().find(|workload| workload.name() == name);
    found
        .copied()
        .ok_or_else(|| format!("{name} is not a workload; `corvid-bench list` names them"))
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
