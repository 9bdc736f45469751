"""The version of Open vSwitch whose Python library this one replaces."""

VERSION = "4.0.0"
