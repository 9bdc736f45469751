//! Names of servers for people: in logs and in `cluster/status` (docs/spec/distribution.md 1.1).

use corvid_log::cluster::Sid;

/// The last component of a `unix:` address up to its first `.`; for other addresses the beginning of the id, `0000` when it is not known.
#[must_use]
pub fn nickname(address: &str, sid: Option<Sid>) -> String {
    if let Some(path) = address.strip_prefix("unix:") {
        let component = path.rsplit('/').next().unwrap_or_default();
        let name = component.split('.').next().unwrap_or_default();
        if !name.is_empty() {
            return name.to_owned();
        }
    }
    sid.map_or_else(|| "0000".to_owned(), |sid| sid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;

    #[test]
    fn nicknames_are_short() {
        let sid = Some(Sid(Uuid([0xab; 16])));
        assert_eq!(nickname("tcp:10.0.0.1:6644", sid), "abab");
        assert_eq!(nickname("tcp:10.0.0.1:6644", None), "0000");
        assert_eq!(nickname("unix:/run/s1.raft.sock", sid), "s1");
        assert_eq!(nickname("unix:s2.raft", None), "s2");
        assert_eq!(nickname("unix:/run/.raft", sid), "abab");
    }
}
