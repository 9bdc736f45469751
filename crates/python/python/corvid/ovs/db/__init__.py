"""The database part of the `ovs` library: errors, schemas, values, indexes and the replica."""
