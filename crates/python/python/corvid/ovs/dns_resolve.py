"""Addresses of host names, from the system's resolver.

The newest library of Open vSwitch has this module for the library unbound. The functions are the
same; a look-up blocks.
"""

import ipaddress
import socket


def init(is_daemon=False):
    """Nothing needs preparation. `is_daemon` makes no difference."""


def destroy():
    """Nothing needs an end."""


def resolve(name):
    """The address of `name` as text; `name` itself if it is an address, None if it has none."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        return None
