"""Shared parts of the interop suites.

One concept a module:

    programs    where the programs under test and the reference programs are
    server      one ovsdb-server process in a directory of its own
    findings    a peer that is a program of its own and reports what it finds
    connection  a minimal JSON-RPC connection for looking into a server
    canonical   names for rows that do not depend on their uuids
    transcript  the same commands run against two servers, outputs compared
    verdict     how a suite says passed, failed or skipped

Only the standard library is used, so that a suite needs nothing but its peer.
"""
