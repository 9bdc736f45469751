//! `ports`: a cloud system creates switch ports. Each port is referenced by one of 100 switches,
//! and its address is in one set. Then it creates load balancers, all in one group, and then it
//! removes everything. A phase ends when every monitor has received the last change.

use std::path::Path;

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::harness::{Harness, Phase};
use crate::northbound;
use crate::workload::{Run, Scale, Workload};

/// The number of connections that create ports.
const WRITERS: usize = 50;

/// The workload with 100 monitors of all changing tables.
pub(crate) struct Ports;

/// The workload without monitors.
pub(crate) struct PortsAlone;

impl Workload for Ports {
    fn name(&self) -> &'static str {
        "ports"
    }

    fn about(&self) -> &'static str {
        "50 connections create 3,000 switch ports, then load balancers (full: 30,000), and remove them; 100 monitors"
    }

    fn prepare(&self, _: Scale, file: &Path) -> Result<(), Error> {
        northbound::create(file)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        drive(run, run.pick(3_000, 30_000), 100, Aim::RatioAtMost(0.25))
    }
}

impl Workload for PortsAlone {
    fn name(&self) -> &'static str {
        "ports-alone"
    }

    fn about(&self) -> &'static str {
        "ports without monitors: 15,000 (full: 30,000)"
    }

    fn prepare(&self, _: Scale, file: &Path) -> Result<(), Error> {
        northbound::create(file)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        drive(run, run.pick(15_000, 30_000), 0, Aim::RatioAtMost(0.05))
    }
}

fn drive(run: &Run<'_>, count: u32, monitors: usize, aim: Aim) -> Result<Vec<Figure>, Error> {
    let mut harness = Harness::new(run)?;
    harness.prepare(northbound::topology(), |_| {})?;
    harness.connect(WRITERS)?;
    harness.watch(monitors, &northbound::monitor())?;
    let phase = |harness: &mut Harness<'_>, number, texts: &mut dyn Iterator<Item = String>| {
        let marker = (monitors > 0).then(|| northbound::marker(number));
        harness.phase(northbound::deal(texts, WRITERS), 1, marker)
    };
    let ports = phase(&mut harness, 0, &mut (0..count).map(northbound::add_port))?;
    let balancers = phase(
        &mut harness,
        1,
        &mut (0..count).map(northbound::add_balancer),
    )?;
    let memory = harness.server().memory()?;
    let port_rows = identities(&mut harness, "Logical_Switch_Port")?;
    let balancer_rows = identities(&mut harness, "Load_Balancer")?;
    let mut removals = port_rows
        .iter()
        .map(|(number, uuid)| northbound::remove_port(*number, uuid))
        .chain(
            balancer_rows
                .iter()
                .map(|(number, uuid)| northbound::remove_balancer(*number, uuid)),
        );
    let removal = phase(&mut harness, 2, &mut removals)?;
    let cpu = |title, phase: &Phase| Figure::lower(title, "us/txn", phase.cpu_us_each()).digits(2);
    let rate = |title, phase: &Phase| Figure::higher(title, "txn/s", phase.rate()).digits(0);
    Ok(vec![
        cpu("server CPU, adding ports", &ports).aim(aim),
        rate("rate of adding ports", &ports),
        cpu("server CPU, adding load balancers", &balancers),
        rate("rate of adding load balancers", &balancers),
        cpu("server CPU, removing both", &removal),
        rate("rate of removing both", &removal),
        Figure::lower("memory with all", "MiB", memory.resident_mib),
        Figure::lower("peak until then", "MiB", memory.peak_mib),
    ])
}

fn identities(harness: &mut Harness<'_>, table: &str) -> Result<Vec<(u32, String)>, Error> {
    let mut reply = Vec::new();
    harness.prepare(northbound::select_all(table), |bytes| {
        reply = bytes.to_vec();
    })?;
    northbound::identities(&reply)
}
