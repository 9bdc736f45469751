//! `--user`: giving up root for another user and group, keeping two capabilities.
//!
//! Looked up while options are parsed, switched to before any file is made. What is kept is what a database server may
//! still need: locking memory and binding low ports.

use std::ffi::CString;
use std::io;

use crate::program;
use crate::vlog;
use corvid_net::errno;

const CAP_NET_BIND_SERVICE: u32 = 10;
const CAP_IPC_LOCK: u32 = 14;
/// More than the kernel knows; dropping stops at the first that it does not.
const CAP_LAST: u32 = 63;
/// Version 3 of the capset interface: 64-bit sets in two halves.
const CAP_VERSION: u32 = 0x2008_0522;

/// Whom to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

impl User {
    /// Looks up `USER`, `USER:GROUP` or `:GROUP`.
    ///
    /// # Errors
    /// The text of the fatal message, less its prefix.
    pub(super) fn parse(spec: &str) -> Result<User, String> {
        // SAFETY: these take no pointers and cannot fail.
        if unsafe { libc::getuid() != 0 || libc::getgid() != 0 } {
            return Err("only root can use --user option".to_owned());
        }
        let (name, group) = spec.trim().split_once(':').unwrap_or((spec.trim(), ""));
        let name = if name.is_empty() { "root" } else { name };
        let Some((uid, primary)) = lookup_user(name) else {
            return Err(format!("user {name} not found, aborting."));
        };
        let gid = match group {
            "" => primary,
            group => {
                let found = lookup_group(group)
                    .ok_or_else(|| format!("group {group} not found, aborting."))?;
                let is_member = found.gid == primary || found.members.iter().any(|one| one == name);
                if !is_member {
                    let text = format!(
                        "Invalid --user option {spec} (user {name} is not in group {group}), aborting."
                    );
                    return Err(text);
                }
                found.gid
            }
        };
        Ok(User {
            name: name.to_owned(),
            uid,
            gid,
        })
    }

    /// Becomes this user for good, or ends the process.
    pub(super) fn switch_or_die(&self) {
        if let Err(error) = vlog::chown_file(self.uid, self.gid).and_then(|()| self.switch()) {
            program::fatal_error(
                format_args!("could not switch to user {}", self.name),
                &error,
            );
        }
    }

    fn switch(&self) -> io::Result<()> {
        let kept = 1u64 << CAP_IPC_LOCK | 1u64 << CAP_NET_BIND_SERVICE;
        // SAFETY: prctl with these operations, setgroups with an empty list and the set*id calls take no pointers that
        // outlive them. The process has one thread, so all of it changes.
        unsafe {
            for capability in 0..=CAP_LAST {
                if libc::prctl(
                    libc::PR_CAPBSET_DROP,
                    libc::c_ulong::from(capability),
                    0,
                    0,
                    0,
                ) < 0
                {
                    break;
                }
            }
            errno::check(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0))?;
            errno::check(libc::setgroups(0, std::ptr::null()))?;
            errno::check(libc::setresgid(self.gid, self.gid, self.gid))?;
            errno::check(libc::setresuid(self.uid, self.uid, self.uid))?;
        }
        set_capabilities(kept)
    }
}

/// Permitted and effective capabilities; nothing is inheritable.
fn set_capabilities(kept: u64) -> io::Result<()> {
    let header = [CAP_VERSION, 0];
    let (low, high) = (kept as u32, (kept >> 32) as u32);
    // Effective, permitted, inheritable; the low halves first.
    let sets = [low, low, 0, high, high, 0];
    // SAFETY: the layouts are those of capset(2), version 3: a header of two words, then two sets of three; both outlive
    // the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    if result < 0 {
        Err(errno::last())
    } else {
        Ok(())
    }
}

fn lookup_user(name: &str) -> Option<(libc::uid_t, libc::gid_t)> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is terminated; the result points to static memory that is read before anything else can overwrite
    // it, for the process has one thread.
    unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|entry| (entry.pw_uid, entry.pw_gid))
}

struct Group {
    gid: libc::gid_t,
    members: Vec<String>,
}

fn lookup_group(name: &str) -> Option<Group> {
    let name = CString::new(name).ok()?;
    // SAFETY: as in `lookup_user`; the member list ends in a null pointer and its strings are terminated.
    unsafe {
        let entry = libc::getgrnam(name.as_ptr()).as_ref()?;
        let mut members = Vec::new();
        let mut next = entry.gr_mem;
        while !next.is_null() && !(*next).is_null() {
            members.push(
                std::ffi::CStr::from_ptr(*next)
                    .to_string_lossy()
                    .into_owned(),
            );
            next = next.add(1);
        }
        Some(Group {
            gid: entry.gr_gid,
            members,
        })
    }
}
