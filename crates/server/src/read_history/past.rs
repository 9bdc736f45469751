//! Readings for clients that come back after a long time: the rows that have changed since their
//! last transaction ([`PastOrder`]). Each has a thread of its own (`history-read`), of low
//! priority.
//!
//! A reading that takes longer than [`READ_MAX`] ends without an answer: its clients wait, and get
//! the contents then.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corvid_history::{NoPast, Timeline};
use corvid_net::errno;
use corvid_reactor::priority;
use corvid_service::job::{JobDone, JobNumber, JobResult};
use corvid_service::read_history::{PastOrder, PastRead};
use corvid_shell::vlog::{self, Module};

use super::files::{HistorySource, ReadingFiles};
use crate::database::history::Histories;
use crate::database::storage::ReplySender;

/// How long a reading may take.
const READ_MAX: Duration = Duration::from_secs(3);

/// The files of one database.
#[derive(Clone, Debug)]
pub(crate) struct PastReader {
    histories: Arc<Histories>,
    name: Arc<str>,
}

impl PastReader {
    /// The reader for the files of the database with this name.
    pub(crate) fn new(histories: Arc<Histories>, name: &str) -> PastReader {
        PastReader {
            histories,
            name: Arc::from(name),
        }
    }

    /// Reads in a thread of its own, and sends the answer.
    pub(crate) fn start(&self, number: JobNumber, order: Box<PastOrder>, replies: &ReplySender) {
        let reader = self.clone();
        let answers = replies.clone();
        let run = move || {
            priority::yield_to_others();
            let read = reader.read(&order);
            if let Err(error) = &read {
                let (name, txn) = (&reader.name, order.txn);
                vlog::dbg(
                    Module::OvsdbServer,
                    format_args!("{name}: no difference since transaction {txn}: {error}"),
                );
            }
            answer(&answers, number, read.ok());
        };
        let started = std::thread::Builder::new()
            .name("history-read".to_owned())
            .spawn(run);
        if let Err(error) = started {
            let error = errno::text(&error);
            vlog::dbg(
                Module::OvsdbServer,
                format_args!("{}: no thread to read history ({error})", self.name),
            );
            answer(replies, number, None);
        }
    }

    fn read(&self, order: &PastOrder) -> Result<PastRead, NoPast> {
        let source: Option<HistorySource> = self.histories.source(&self.name);
        let source = source.ok_or(NoPast::Unknown)?;
        let until = Instant::now() + READ_MAX;
        let is_wanted = order.is_wanted.clone();
        let files = ReadingFiles::new(
            source,
            Rc::new(move || {
                let is_wanted = is_wanted.load(std::sync::atomic::Ordering::Relaxed);
                match Instant::now() < until {
                    _ if !is_wanted => Err("nobody waits for it any more".to_owned()),
                    true => Ok(()),
                    false => Err(format!("it takes longer than {} s", READ_MAX.as_secs())),
                }
            }),
        );
        let history = Timeline::open(&files)?;
        order.read(history, files.end())
    }
}

fn answer(replies: &ReplySender, number: JobNumber, read: Option<PastRead>) {
    let read = read.map(Box::new);
    replies.send(JobDone(number, JobResult::PastRead(read)).into());
}
