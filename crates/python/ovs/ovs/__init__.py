"""The Python library of Open vSwitch, as Corvid implements it.

The modules are those of the package `corvid.ovs`, found without importing `corvid`, so that
programs that use none of its native code do not load it.
"""

import importlib.util
import os.path


def _folders():
    """Returns the folders of `corvid.ovs`."""
    spec = importlib.util.find_spec("corvid")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("this distribution of ovs needs the distribution corvid")
    return [os.path.join(folder, __name__) for folder in spec.submodule_search_locations]


__path__ = _folders()
