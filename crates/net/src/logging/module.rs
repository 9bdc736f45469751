//! The names under which messages are logged.
//!
//! All names that users may pass to `-v` are registered, used by this code or not. An unknown
//! module name is an error for the whole command line, and scripts freely name modules of the
//! reference. Sorted by name.

/// Declares [`Module`] and the table of its names.
macro_rules! modules {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A part of the program that logs under its own name and has its own levels.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is named by its string")]
        #[repr(u8)]
        pub enum Module { $($variant),* }

        impl Module {
            /// Every module, sorted by name.
            pub const ALL: &'static [Module] = &[$(Module::$variant),*];
            const NAMES: &'static [&'static str] = &[$($name),*];
            const TARGETS: &'static [&'static str] = &[$(concat!("corvid::", $name)),*];
        }
    };
}

modules! {
    Backtrace = "backtrace",
    Bundle = "bundle",
    CommandLine = "command_line",
    CooperativeMultitasking = "cooperative_multitasking",
    Coverage = "coverage",
    Daemon = "daemon",
    DaemonUnix = "daemon_unix",
    DnsResolve = "dns_resolve",
    Entropy = "entropy",
    FatalSignal = "fatal_signal",
    Hmap = "hmap",
    Jsonrpc = "jsonrpc",
    Lockfile = "lockfile",
    Memory = "memory",
    OvsRcu = "ovs_rcu",
    OvsReplay = "ovs_replay",
    OvsThread = "ovs_thread",
    Ovsdb = "ovsdb",
    OvsdbClient = "ovsdb_client",
    OvsdbCs = "ovsdb_cs",
    OvsdbError = "ovsdb_error",
    OvsdbFile = "ovsdb_file",
    OvsdbIdl = "ovsdb_idl",
    OvsdbJsonrpcServer = "ovsdb_jsonrpc_server",
    OvsdbLog = "ovsdb_log",
    OvsdbMonitor = "ovsdb_monitor",
    OvsdbRbac = "ovsdb_rbac",
    OvsdbServer = "ovsdb_server",
    OvsdbTool = "ovsdb_tool",
    OvsdbUtil = "ovsdb_util",
    PollLoop = "poll_loop",
    Process = "process",
    Raft = "raft",
    RaftRpc = "raft_rpc",
    Reconnect = "reconnect",
    Relay = "relay",
    Replication = "replication",
    Sha1 = "sha1",
    Signals = "signals",
    SocketUtil = "socket_util",
    SocketUtilUnix = "socket_util_unix",
    Storage = "storage",
    Stream = "stream",
    StreamFd = "stream_fd",
    StreamReplay = "stream_replay",
    StreamSsl = "stream_ssl",
    StreamTcp = "stream_tcp",
    StreamUnix = "stream_unix",
    Svec = "svec",
    Table = "table",
    Timeval = "timeval",
    Transaction = "transaction",
    TransactionForward = "transaction_forward",
    Trigger = "trigger",
    Unixctl = "unixctl",
    Util = "util",
    Uuid = "uuid",
    Vlog = "vlog",
}

impl Module {
    /// The number of modules.
    pub const COUNT: usize = Module::ALL.len();

    /// The module's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Module::NAMES[self as usize]
    }

    /// The target of the module's records in the `log` facade.
    #[inline]
    #[must_use]
    pub fn target(self) -> &'static str {
        Module::TARGETS[self as usize]
    }

    /// The module whose records have this target.
    #[must_use]
    pub fn of_target(target: &str) -> Option<Module> {
        let name = target.strip_prefix("corvid::")?;
        let index = Module::NAMES.binary_search(&name).ok()?;
        Some(Module::ALL[index])
    }

    /// The module with this name, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Module> {
        Module::ALL
            .iter()
            .copied()
            .find(|module| module.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found_in_any_case() {
        assert!(Module::NAMES.is_sorted());
        assert_eq!(Module::parse("OVSDB_server"), Some(Module::OvsdbServer));
        assert_eq!(Module::parse("nothing"), None);
        let target = Module::StreamSsl.target();
        assert_eq!(target, "corvid::stream_ssl");
        assert_eq!(Module::of_target(target), Some(Module::StreamSsl));
        assert_eq!(Module::of_target("corvid::client"), None);
    }

    #[test]
    fn every_name_of_the_contract_is_registered() {
        let required = "backtrace command_line cooperative_multitasking coverage daemon daemon_unix dns_resolve fatal_signal \
            hmap jsonrpc lockfile memory ovs_rcu ovs_replay ovs_thread ovsdb ovsdb_client ovsdb_cs ovsdb_error ovsdb_file \
            ovsdb_idl ovsdb_jsonrpc_server ovsdb_log ovsdb_monitor ovsdb_rbac ovsdb_server ovsdb_util poll_loop process raft \
            raft_rpc reconnect relay replication signals socket_util socket_util_unix storage stream stream_fd stream_replay \
            stream_ssl stream_tcp stream_unix svec timeval transaction transaction_forward trigger unixctl util uuid vlog";
        for name in required.split_whitespace() {
            assert!(Module::parse(name).is_some(), "{name}");
        }
    }
}
