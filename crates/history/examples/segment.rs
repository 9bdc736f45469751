//! Compresses a database file to a segment, as a server does with files that compactions replace:
//! `cargo run --release -p corvid-history --example segment FILE SEGMENT`.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;

use corvid_history::SegmentWriter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut names = std::env::args().skip(1);
    let (Some(from), Some(to)) = (names.next(), names.next()) else {
        return Err("FILE SEGMENT expected".into());
    };
    let mut file = File::open(from)?;
    let mut writer = SegmentWriter::new();
    let mut out = Vec::new();
    let mut room = vec![0; 256 * 1024];
    loop {
        let got = file.read(&mut room)?;
        if got == 0 {
            break;
        }
        writer.push(&room[..got], &mut out)?;
    }
    let summary = writer.finish(&mut out)?;
    fs::write(to, out)?;
    println!("{summary:?}");
    Ok(())
}
