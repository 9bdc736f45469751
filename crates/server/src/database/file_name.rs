//! Reads the name of the database in a file from its first record, before the file is opened for
//! serving.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use corvid_log::header::LINE_BYTES_MAX;
use corvid_log::{Magic, RecordReader, Source};
use corvid_net::errno;

/// The name of the database in a file, standalone or a cluster member's. `None`: the file cannot be
/// read or is not a database; opening it reports why.
pub(crate) fn database_of_file(path: &Path) -> Option<String> {
    let mut head = [0; LINE_BYTES_MAX];
    let held = File::open(path).ok()?.read(&mut head).ok()?;
    let magic = Magic::identify(&head[..held]).ok()?;
    let source = FileSource(File::open(path).ok()?);
    // The first object is the schema, or the header of a member's file. Both have a member called
    // `name`.
    let first = RecordReader::new(source, magic).next_object().ok()??;
    Some(first.get("name")?.as_str()?.to_owned())
}

struct FileSource(File);

impl Source for FileSource {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        self.0.read(room).map_err(|error| errno::text(&error))
    }
}
