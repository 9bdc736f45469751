//! Clients in a forked child: calls fail there, and the parent's connection is unharmed.

use std::time::Duration;

use corvid_driver::{Error, Idl, blocking, fork, polled, shared};
use corvid_idl::Misuse;
use corvid_tests::server::Implementation;

use self::child::in_a_child;
use crate::fixture::{TIMEOUT, class, insert, names, remote, server};

fn is_forked<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Misuse(Misuse::Forked)))
}

#[test]
fn a_connected_client_is_an_error_in_a_child_and_works_on_in_the_parent() {
    let server = server(Implementation::Corvid, &[]);
    let remote = remote(&server);
    let mut client = blocking::Client::connect(class(), &remote).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    insert(&mut client, "ann");
    let seqno = client.session_state().session_seqno();
    let mut gone = Some(blocking::Client::connect(class(), &remote).expect("a client"));
    let gone_in_child = gone.as_mut().expect("it is there");
    gone_in_child.wait_for_contents(TIMEOUT).expect("contents");
    assert!(in_a_child(|| {
        let refuses = is_forked(&client.wait_for_contents(TIMEOUT))
            && is_forked(&client.wait_for_change(0, Some(Duration::ZERO)))
            && client.run() == Err(Misuse::Forked)
            && client.wait().fd.is_none();
        // The child can read the replica.
        let reads = names(&client) == ["ann"];
        drop(gone.take());
        refuses && reads
    }));
    insert(&mut client, "bob");
    assert_eq!(names(&client), ["ann", "bob"]);
    assert_eq!(
        client.session_state().session_seqno(),
        seqno,
        "the connection was not lost"
    );
    let mut other = gone.expect("it was dropped in the child only");
    insert(&mut other, "cleo");
    assert_eq!(other.metrics().session.connects, 1);
}

#[test]
fn a_client_that_has_not_run_moves_to_a_child() {
    let server = server(Implementation::Corvid, &[]);
    let mut client = blocking::Client::connect(class(), &remote(&server)).expect("a client");
    assert!(in_a_child(|| {
        client.wait_for_contents(TIMEOUT).expect("contents");
        insert(&mut client, "ann");
        true
    }));
    client.wait_for_contents(TIMEOUT).expect("contents");
    assert_eq!(names(&client), ["ann"]);
}

#[test]
fn a_child_may_inherit_what_its_parent_gives_up() {
    let server = server(Implementation::Corvid, &[]);
    let mut client = blocking::Client::connect(class(), &remote(&server)).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    assert!(in_a_child(|| {
        fork::inherit();
        insert(&mut client, "ann");
        client.metrics().session.connects == 1
    }));
}

#[test]
fn a_shared_client_fails_in_a_child_and_hangs_nowhere() {
    let server = server(Implementation::Corvid, &[]);
    let client = shared::Client::connect(class(), &remote(&server)).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    let mut handle = Some(client.clone());
    assert!(in_a_child(|| {
        let refuses = is_forked(&client.wait_for_contents(TIMEOUT))
            && is_forked(&client.transact(TIMEOUT, |_| Ok::<(), Misuse>(())))
            && client.set_lock(Some("lock")) == Err(Misuse::Forked);
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            client.read(Idl::change_seqno)
        }));
        drop(handle.take());
        drop(client.clone());
        refuses && read.is_err()
    }));
    let seqno = client.read(Idl::change_seqno);
    let mut other = polled_writer(&remote(&server));
    insert(&mut other, "ann");
    client.wait_for_change(seqno, TIMEOUT).expect("a change");
    assert_eq!(client.metrics().session.connects, 1);
}

fn polled_writer(remote: &str) -> blocking::Client {
    blocking::Client::over(polled::Client::connect(class(), remote).expect("a client"))
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the standard library has no fork")]
mod child {
    /// Runs `work` in a forked child and returns whether it returned true there. `work` may
    /// allocate: the C library's allocator works in a child.
    pub(super) fn in_a_child(work: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child is a copy of this thread alone. It uses nothing that other tests lock,
        // and ends without running their destructors.
        unsafe {
            let child = libc::fork();
            assert!(child >= 0, "no process is left");
            if child == 0 {
                // A panic must not unwind into the test program, and an error must not hang it.
                libc::alarm(60);
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                libc::_exit(i32::from(!matches!(outcome, Ok(true))));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }
}
