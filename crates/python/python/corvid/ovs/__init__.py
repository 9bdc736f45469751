"""The Python library of Open vSwitch, as Corvid implements it."""
