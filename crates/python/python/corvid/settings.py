"""The settings of a session, as keywords of ``connect`` and of clients."""

from __future__ import annotations

from typing import Optional, TypedDict


class Settings(TypedDict, total=False):
    """All of them have defaults."""

    #: Connects only to the leader of a cluster (True).
    leader_only: bool
    #: Tries again after a failed attempt (True).
    retry: bool
    #: Tries the remotes in random order (True).
    shuffle: bool
    #: Seconds of silence after which the server is probed: 0 never, None as is the default.
    probe_interval: Optional[float]
    #: A lock that transactions need; None for none.
    lock: Optional[str]
    #: The file with the private key, for ``ssl:`` remotes.
    private_key: Optional[str]
    #: The file with the certificate.
    certificate: Optional[str]
    #: The file with the certificates of the authorities that servers must have theirs from.
    ca_cert: Optional[str]
