//! A proxy that loses replies: its clients cannot know whether their transactions were executed.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Listens at `path` for clients of the server at the socket `server`, until the process ends. The
/// first `cuts` connections on which the reply to an insertion comes end before it.
///
/// # Panics
/// The path is in use.
pub fn start(path: &Path, server: &Path, cuts: usize) {
    let listener = UnixListener::bind(path).expect("bound");
    let (server, cuts) = (server.to_owned(), Arc::new(AtomicUsize::new(cuts)));
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(upstream) = UnixStream::connect(&server) else {
                continue;
            };
            let ends = [
                (client.try_clone(), upstream.try_clone(), false),
                (upstream.try_clone(), client.try_clone(), true),
            ];
            for (source, sink, is_reply) in ends {
                let (Ok(source), Ok(sink)) = (source, sink) else {
                    return;
                };
                let cuts = cuts.clone();
                thread::spawn(move || pass_on(source, sink, is_reply.then_some(&*cuts)));
            }
        }
    });
}

fn pass_on(mut source: UnixStream, mut sink: UnixStream, cuts: Option<&AtomicUsize>) {
    let mut room = vec![0; 1 << 16];
    while let Ok(got @ 1..) = source.read(&mut room) {
        let text = String::from_utf8_lossy(&room[..got]);
        let is_result = text.contains(r#""uuid":["uuid""#);
        let take = |left: usize| left.checked_sub(1);
        let is_cut = is_result
            && cuts.is_some_and(|cuts| {
                cuts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
            });
        if is_cut || sink.write_all(&room[..got]).is_err() {
            break;
        }
    }
    let _ = source.shutdown(Shutdown::Both);
    let _ = sink.shutdown(Shutdown::Both);
}
