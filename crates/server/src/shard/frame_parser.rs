//! Parses the long requests of one shard's clients on a separate thread (`texts`), one after
//! another, while the shard serves other sessions. The bodies of replies are written by another
//! thread, `contents`.
//!
//! The first long frame starts the thread, which ends with its shard. The queue needs no limit: a
//! session has at most one frame in it.

use corvid_monitor::SessionId;
use corvid_net::clock;
use corvid_reactor::shard::ShardHandle;
use corvid_service::frontend::InboundFrame;
use crossbeam_channel::{Receiver, Sender};

use super::ShardMessage;
use crate::session_cost;

/// The queue of the parsing thread.
#[derive(Debug)]
pub(super) struct FrameParser {
    shard: ShardHandle<ShardMessage>,
    thread: Option<Sender<(SessionId, InboundFrame)>>,
}

impl FrameParser {
    /// A parser whose thread is not started yet. Parsed frames are posted to `shard`.
    pub(super) fn new(shard: ShardHandle<ShardMessage>) -> FrameParser {
        FrameParser {
            shard,
            thread: None,
        }
    }

    /// Parses a frame on the thread, which then posts it as [`ShardMessage::FrameParsed`]. Without
    /// a thread, the frame is parsed here.
    pub(super) fn parse(&mut self, session: SessionId, text: InboundFrame) {
        if self.thread.is_none() {
            self.thread = start(self.shard.clone()).ok();
        }
        match &self.thread {
            // Sending cannot fail: the thread lives as long as this sender.
            Some(thread) => drop(thread.send((session, text))),
            None => parse(session, text, &self.shard),
        }
    }
}

fn start(shard: ShardHandle<ShardMessage>) -> std::io::Result<Sender<(SessionId, InboundFrame)>> {
    let (sender, texts) = crossbeam_channel::unbounded();
    std::thread::Builder::new()
        .name("texts".to_owned())
        .spawn(move || run(&texts, &shard))?;
    Ok(sender)
}

fn run(texts: &Receiver<(SessionId, InboundFrame)>, shard: &ShardHandle<ShardMessage>) {
    for (session, text) in texts {
        parse(session, text, shard);
    }
}

/// Parses a frame, charges that to its session, and posts the frame.
fn parse(session: SessionId, mut text: InboundFrame, shard: &ShardHandle<ShardMessage>) {
    let began_ns = clock::mono_ns();
    text.parse();
    let cpu_ns = session_cost::cpu_ns(clock::mono_ns() - began_ns);
    shard.post_batch([
        ShardMessage::Charge(session, cpu_ns),
        ShardMessage::FrameParsed(session, text),
    ]);
}
