"""The Python library of Open vSwitch, as Corvid implements it.

The modules are those of the package `corvid.ovs`, found without importing `corvid`, so that
programs that use none of its native code do not load it.
"""

import importlib.util
import os.path


def _folders():
    """Returns the folders of `corvid.ovs`. Another project's distribution `corvid` has none."""
    spec = importlib.util.find_spec("corvid")
    places = spec.submodule_search_locations if spec is not None else None
    folders = [os.path.join(place, __name__) for place in places or ()]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    if not folders:
        raise ImportError("this distribution of ovs needs the distribution corvid-ovsdb, and no other with a module corvid")
    return folders


__path__ = _folders()
