"""The version of Open vSwitch whose Python library this one replaces."""

VERSION = "3.7.0"
