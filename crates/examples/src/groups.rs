//! A controller that keeps port groups in step with logical switch ports: a port that names a group
//! in `external_ids:group` is a member of the port group with that name.
//!
//! The controller works incrementally. It looks only at ports that changed. To move a port it
//! removes one element from a group and adds one element to another, which costs the same in a
//! group of ten thousand ports. A port stays on the list until the transaction with its group is
//! committed, so a failed transaction loses nothing. An index finds groups by name, and the
//! controller creates missing groups.
//!
//! No other program may write the groups of this controller.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use corvid::blocking::Client;
use corvid::typed::{Row, Str, TypedIndex, TypedIndexBuilder};
use corvid::{Class, ClassError, Error, Idl, Misuse};

use crate::ovn_northbound::{LogicalSwitchPort, PortGroup, class};

/// The key of `external_ids` that names a port's group.
pub const GROUP_KEY: &str = "group";

/// A controller of port groups.
#[derive(Debug)]
pub struct Controller {
    by_name: TypedIndex<PortGroup>,
    /// Ports that changed and are not yet in the right group.
    dirty: BTreeSet<LogicalSwitchPort>,
    /// The group of each port, as far as the controller has read or written it.
    placed: BTreeMap<LogicalSwitchPort, Str>,
}

impl Controller {
    /// Makes a controller, and the class that its client must use.
    ///
    /// # Errors
    /// If the class refuses the index, which would be a bug of this example.
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

    /// Learns which ports are in which groups. Call it once, when the client has the initial
    /// contents.
    pub fn learn(&mut self, idl: &Idl) {
        for group in PortGroup::all(idl) {
            let ports = group.ports(idl).into_iter();
            self.placed
                .extend(ports.map(|port| (port, group.name(idl))));
        }
    }

    /// Moves the ports that changed since the last call, and returns how many were moved.
    ///
    /// # Errors
    /// The errors of [`Client::transact`]. Ports that could not be moved stay on the list, and the
    /// next call tries them again.
    pub fn step(&mut self, client: &mut Client, timeout: Option<Duration>) -> Result<usize, Error> {
        let idl = client.idl_mut();
        self.dirty
            .extend(LogicalSwitchPort::changes(idl).map(|(port, _)| port));
        // `dirty` has these ports now, and keeps them if the transaction fails.
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
        // Only a committed transaction has moved ports.
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

/// Returns the group that a port should be in; `None` if it names none, or if it was deleted.
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
