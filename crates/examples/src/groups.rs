//! A controller: every logical switch port that names a group in `external_ids:group` is in the port group of that name.
//!
//! It works by what changed: a port that changes is looked at, and put into or taken from one group each, by a change of one element that
//! costs the same in a group of ten thousand ports. Ports whose group could not be written yet stay on the list, so nothing is lost when
//! a transaction has to be made again. Groups are found by an index on their names; those that are missing are made.
//!
//! It requires that no other program writes its groups.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use corvid::blocking::Client;
use corvid::typed::{Row, Str, TypedIndex, TypedIndexBuilder};
use corvid::{Class, ClassError, Error, Idl, Misuse};

use crate::ovn_northbound::{LogicalSwitchPort, PortGroup, class};

/// The key of `external_ids` that names a port's group.
pub const GROUP_KEY: &str = "group";

/// The controller.
#[derive(Debug)]
pub struct Controller {
    by_name: TypedIndex<PortGroup>,
    /// Ports to be looked at.
    dirty: BTreeSet<LogicalSwitchPort>,
    /// The group that each port is in, as far as we put it there or found it there.
    placed: BTreeMap<LogicalSwitchPort, Str>,
}

impl Controller {
    /// A controller, and the class of the client that it is to be run with.
    ///
    /// # Errors
    /// The index cannot be made, which would be a mistake here.
    pub fn new() -> Result<(Controller, Class), ClassError> {
        let mut class = class();
        class.track(LogicalSwitchPort::EXTERNAL_IDS);
        class.add_column(PortGroup::NAME);
        class.add_column(PortGroup::PORTS);
        let by_name = TypedIndexBuilder::new()
            .ascending(PortGroup::NAME)
            .build(&mut class)?;
        let controller = Controller {
            by_name,
            dirty: BTreeSet::new(),
            placed: BTreeMap::new(),
        };
        Ok((controller, class))
    }

    /// Reads which ports are in which groups: once, when the initial contents are there.
    pub fn learn(&mut self, idl: &Idl) {
        for group in PortGroup::all(idl) {
            let ports = group.ports(idl).into_iter();
            self.placed
                .extend(ports.map(|port| (port, group.name(idl))));
        }
    }

    /// Brings the groups in step with what changed since the last time; how many ports were moved.
    ///
    /// # Errors
    /// As [`Client::transact`]. The next call does the remaining work.
    pub fn step(&mut self, client: &mut Client, timeout: Option<Duration>) -> Result<usize, Error> {
        let idl = client.idl_mut();
        self.dirty
            .extend(LogicalSwitchPort::changes(idl).map(|(port, _)| port));
        idl.clear_changes();
        if self.dirty.is_empty() {
            return Ok(0);
        }
        let (dirty, placed, by_name) = (&self.dirty, &self.placed, self.by_name);
        let moved = client.transact(timeout, |idl| -> Result<_, Misuse> {
            let mut moved = BTreeMap::new();
            for &port in dirty {
                let (old, new) = (placed.get(&port), wanted(idl, port));
                if old != new.as_ref() {
                    place(idl, by_name, port, old, new.as_ref())?;
                    moved.insert(port, new);
                }
            }
            Ok(moved)
        })?;
        let count = moved.value.len();
        for (port, group) in moved.value {
            match group {
                Some(group) => self.placed.insert(port, group),
                None => self.placed.remove(&port),
            };
        }
        self.dirty.clear();
        Ok(count)
    }
}

/// The group that a port is to be in; `None` also for one that is gone.
fn wanted(idl: &Idl, port: LogicalSwitchPort) -> Option<Str> {
    let group = port.external_ids(idl).remove(GROUP_KEY);
    group.filter(|group| !group.is_empty())
}

fn place(
    idl: &mut Idl,
    by_name: TypedIndex<PortGroup>,
    port: LogicalSwitchPort,
    old: Option<&Str>,
    new: Option<&Str>,
) -> Result<(), Misuse> {
    let find = |idl: &Idl, name: &Str| {
        let key = by_name.key(idl).with(PortGroup::NAME, name.clone());
        key.find(idl)
    };
    if let Some(group) = old.and_then(|name| find(idl, name)) {
        group.remove_ports(idl, port)?;
    }
    if let Some(name) = new {
        let group = match find(idl, name) {
            Some(group) => group,
            None => {
                let group = PortGroup::insert(idl)?;
                group.set_name(idl, name.clone())?;
                group
            }
        };
        group.add_ports(idl, port)?;
    }
    Ok(())
}
