//! `--user`: gives up root for another user and group, but keeps two capabilities.
//!
//! The user is looked up while options are parsed, and switched to before any file is created. The
//! two capabilities are those that a database server may still need: locking memory and binding low
//! ports.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::program;
use crate::vlog;

/// Higher than any capability that the kernel knows; dropping stops at the first unknown one.
const CAP_LAST: u32 = 63;

/// The user and group to switch to.
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
    /// The text of the fatal message, without its prefix.
    pub(super) fn parse(spec: &str) -> Result<User, String> {
        if !getuid().is_root() || !getgid().is_root() {
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

    /// Switches to this user for good, or ends the process.
    pub(super) fn switch_or_die(&self) {
        if let Err(error) = vlog::chown_file(self.uid, self.gid).and_then(|()| self.switch()) {
            program::fatal_error(
                format_args!("could not switch to user {}", self.name),
                &error,
            );
        }
    }

    /// The process has one thread, so changing the calling thread changes the whole process.
    fn switch(&self) -> io::Result<()> {
        for capability in 0..=CAP_LAST {
            let capability = CapabilitySet::from_bits_retain(1 << capability);
            if remove_capability_from_bounding_set(capability).is_err() {
                break;
            }
        }
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_keep_capabilities(true)?;
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        let kept = CapabilitySet::IPC_LOCK | CapabilitySet::NET_BIND_SERVICE;
        let sets = CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        };
        Ok(set_capabilities(None, sets)?)
    }
}

fn lookup_user(name: &str) -> Option<(libc::uid_t, libc::gid_t)> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is terminated; the result points to static memory that is read before
    // anything else can overwrite it, for the process has one thread.
    unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|entry| (entry.pw_uid, entry.pw_gid))
}

struct Group {
    gid: libc::gid_t,
    members: Vec<String>,
}

fn lookup_group(name: &str) -> Option<Group> {
    let name = CString::new(name).ok()?;
    // SAFETY: as in `lookup_user`; the member list ends in a null pointer and its strings are
    // terminated.
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
