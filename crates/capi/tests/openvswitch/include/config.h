/* Stand-in for the header that Open vSwitch's configure makes. */
