//! The monitoring pages: where they are served, and whether anything is measured. Part of the main
//! thread.
//!
//! Invariant: metrics are on exactly while the pages are served.

use std::sync::Arc;

use corvid_shell::vlog::{self, Module};

use crate::http::{self, Running};
use crate::metrics::Metrics;
use crate::metrics::listen::ListenAt;

/// The value of the setting while no pages are served.
const NOWHERE: &str = "none";

/// The served pages, or none.
#[derive(Debug, Default)]
pub(crate) struct Pages(Option<Served>);

#[derive(Debug)]
struct Served {
    /// The setting, as given by the user.
    setting: String,
    /// `None`: no part of the setting applies to this server.
    _http: Option<Running>,
}

impl Pages {
    /// The setting in force.
    pub(crate) fn setting(&self) -> &str {
        self.0.as_ref().map_or(NOWHERE, |served| &served.setting)
    }

    /// Serves the pages where `setting` says for a server of these databases, or nowhere. The
    /// previous pages are served until the new ones are.
    ///
    /// # Errors
    /// The setting is invalid, or the server cannot listen at the address. Nothing has changed.
    pub(crate) fn set(
        &mut self,
        metrics: &Arc<Metrics>,
        setting: &str,
        databases: &[String],
    ) -> Result<(), String> {
        if setting == self.setting() {
            return Ok(());
        }
        if setting == NOWHERE {
            self.0 = None;
            metrics.switch().set(false);
            return Ok(());
        }
        let address = ListenAt::parse(setting)?.address_of(databases);
        let Some(address) = address.transpose()? else {
            vlog::info(
                Module::OvsdbServer,
                format_args!(
                    "metrics-listen={setting} names no database of this server: not listening"
                ),
            );
            self.keep(setting, None);
            metrics.switch().set(false);
            return Ok(());
        };
        let http = http::start(&address, metrics.clone()).map_err(|error| {
            error.log();
            format!("could not listen ({error})")
        })?;
        metrics.switch().set(true);
        self.keep(setting, Some(http));
        Ok(())
    }

    fn keep(&mut self, setting: &str, http: Option<Running>) {
        self.0 = Some(Served {
            setting: setting.to_owned(),
            _http: http,
        });
    }
}
