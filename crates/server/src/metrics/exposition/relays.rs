//! The samples of relays.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Scrape;
use crate::metrics::families;
use crate::metrics::relay::{RelayFigures, RelayStage};
use crate::relay::handle::RelayHandle;

impl Scrape {
    pub(super) fn of_relays(&mut self, relays: &[(String, RelayHandle)]) {
        let connected = relays.iter().map(|(name, relay)| {
            let is_connected = relay.figures().stage() == RelayStage::Connected;
            (vec![name.clone()], u64::from(is_connected))
        });
        self.whole(families::RELAY_CONNECTED, connected);
        let stages = relays.iter().map(|(name, relay)| {
            let seconds = relay.figures().stage_ms() as f64 / 1e3;
            (vec![name.clone()], seconds)
        });
        self.real(families::RELAY_STATE_AGE, stages);
        let requests = relays.iter().flat_map(|(name, relay)| {
            let figures = relay.figures();
            let states = [("queued", &figures.waiting), ("in_flight", &figures.sent)];
            states.map(|(state, count)| {
                let labels = vec![name.clone(), state.to_owned()];
                (labels, count.load(Ordering::Relaxed))
            })
        });
        self.whole(families::RELAY_REQUESTS, requests);
        let mut count = |family, cell: fn(&RelayFigures) -> &AtomicU64| {
            let samples = relays.iter().map(|(name, relay)| {
                let count = cell(relay.figures()).load(Ordering::Relaxed);
                (vec![name.clone()], count)
            });
            self.whole(family, samples);
        };
        count(families::RELAY_UPDATES, |figures| &figures.changes);
        count(families::RELAY_UNAPPLIED, |figures| {
            &figures.unapplied_bytes
        });
        count(families::RELAY_RECEIVED, |figures| &figures.received_bytes);
        count(families::RELAY_CONNECTIONS, |figures| &figures.connects);
    }
}
