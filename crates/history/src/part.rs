//! One file of a database's history: a segment, a kept file that is not compressed yet, or the
//! present file. All have an index; that of a plain file is made by scanning it, when it is asked
//! for.

use std::cell::OnceCell;
use std::fmt;

use corvid_json::hex;
use corvid_log::Magic;
use corvid_log::cluster::{Header, Replay};

use crate::error::HistoryError;
use crate::records::Records;
use crate::scan::{Role, Scan};
use crate::segment::{
    FRAME_TEXT_BYTES, Frame, FrameMemory, Identity, Index, Kind, Segment, read_index,
};
use crate::{ReadAt, SegmentError};

/// Bytes of one read of a scan.
const SCAN_BYTES: usize = 256 * 1024;

/// Bytes in which the name of the database is looked for.
const IDENTIFY_BYTES: usize = 1024 * 1024;

/// An open file of the history.
pub struct Part<F> {
    name: String,
    number: Option<u64>,
    form: Form<F>,
}

/// The two forms of a file.
enum Form<F> {
    Segment(Segment<F>),
    Plain(Plain<F>),
}

/// A file without an index.
struct Plain<F> {
    file: F,
    index: OnceCell<Index>,
    beginning: OnceCell<Beginning>,
}

/// How a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The kind of file.
    pub(crate) kind: Kind,
    /// Number of the records after the schema that are not commits, in a standalone file: 1 has
    /// contents, and 2 may name the commits before.
    pub(crate) contents: u64,
}

/// The longest file of a server that has not joined its cluster: a header with addresses.
pub const UNJOINED_BYTES_MAX: u64 = 64 * 1024;

/// Whether this is the file of a server that has not joined its cluster, so it has no contents.
/// False for any other text.
#[must_use]
pub fn has_not_joined(text: &dyn ReadAt) -> bool {
    let mut records = Records::new(text, Magic::Clustered, (0, 0), UNJOINED_BYTES_MAX, true);
    if !matches!(records.next(), Ok(Some(_))) {
        return false;
    }
    let header = records
        .body()
        .ok()
        .and_then(|body| Header::decode(body).ok());
    header.is_some_and(|header| Replay::new(&header).is_none())
}

impl<F> fmt::Debug for Part<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("name", &self.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl<F: ReadAt> Part<F> {
    /// Opens a segment: reads its index. Its text uses this memory.
    ///
    /// # Errors
    /// As [`crate::read_index`].
    pub fn segment(
        name: &str,
        number: u64,
        file: F,
        memory: FrameMemory,
    ) -> Result<Part<F>, HistoryError> {
        let segment = Segment::sharing(file, number, memory);
        let segment = segment.map_err(|error| HistoryError::file(name, error))?;
        Ok(Part {
            name: name.to_owned(),
            number: Some(number),
            form: Form::Segment(segment),
        })
    }

    /// Opens a plain database file, which has a number if it is not the present one.
    #[must_use]
    pub fn plain(name: &str, number: Option<u64>, file: F) -> Part<F> {
        Part {
            name: name.to_owned(),
            number,
            form: Form::Plain(Plain {
                file,
                index: OnceCell::new(),
                beginning: OnceCell::new(),
            }),
        }
    }

    /// Opens the present file, or a segment that is read alone as if it were one.
    ///
    /// # Errors
    /// It is a damaged segment.
    pub fn present(name: &str, file: F) -> Result<Part<F>, HistoryError> {
        match read_index(&file) {
            Err(SegmentError::NotSegment | SegmentError::Read(_)) => {
                Ok(Part::plain(name, None, file))
            }
            _ => Ok(Part {
                number: None,
                ..Part::segment(name, 0, file, FrameMemory::default())?
            }),
        }
    }

    /// The file's name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number; `None` for the present file.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    /// Whether it is compressed.
    #[must_use]
    pub fn is_segment(&self) -> bool {
        matches!(self.form, Form::Segment(_))
    }

    /// The index, made by a scan if the file has none.
    ///
    /// # Errors
    /// The file cannot be read, or is not a database.
    pub fn index(&self) -> Result<&Index, HistoryError> {
        match &self.form {
            Form::Segment(segment) => Ok(segment.index()),
            Form::Plain(Plain { file, index, .. }) => {
                if let Some(index) = index.get() {
                    return Ok(index);
                }
                let scanned = scan(file).map_err(|error| self.error(error))?;
                Ok(index.get_or_init(|| scanned))
            }
        }
    }

    /// The text of the database file.
    #[must_use]
    pub fn text(&self) -> &dyn ReadAt {
        match &self.form {
            Form::Segment(segment) => segment,
            Form::Plain(plain) => &plain.file,
        }
    }

    /// Which database it is.
    ///
    /// # Errors
    /// As for [`Part::index`].
    pub fn identity(&self) -> Result<&Identity, HistoryError> {
        Ok(&self.index()?.identity)
    }

    /// Which database it is, if that is known or can be found out at its beginning.
    pub(crate) fn identity_if_known(&self) -> Option<Identity> {
        match &self.form {
            Form::Segment(segment) => Some(segment.index().identity.clone()),
            Form::Plain(Plain { file, index, .. }) => match index.get() {
                Some(index) => Some(index.identity.clone()),
                None => identify(file),
            },
        }
    }

    /// The magic of its records.
    ///
    /// # Errors
    /// As for [`Part::index`].
    pub(crate) fn magic(&self) -> Result<Magic, HistoryError> {
        Ok(self.beginning()?.kind.magic())
    }

    /// How the file begins. A plain file is read up to there only.
    ///
    /// # Errors
    /// The file cannot be read, or is not a database.
    pub(crate) fn beginning(&self) -> Result<Beginning, HistoryError> {
        let plain = match &self.form {
            Form::Segment(segment) => return Ok(Beginning::of(segment.index())),
            Form::Plain(plain) => plain,
        };
        if let Some(index) = plain.index.get() {
            return Ok(Beginning::of(index));
        }
        if let Some(beginning) = plain.beginning.get() {
            return Ok(*beginning);
        }
        let beginning = begin(&plain.file).map_err(|error| self.error(error))?;
        Ok(*plain.beginning.get_or_init(|| beginning))
    }

    /// Whether this is the file of a server that has not joined its cluster, so it has no contents.
    /// A file that cannot be read is reported when it is needed.
    pub(crate) fn has_not_joined(&self) -> bool {
        let is_short = |length: u64| length <= UNJOINED_BYTES_MAX;
        let text = self.text();
        text.length().is_ok_and(is_short) && has_not_joined(text)
    }

    /// The records from the beginning of the text to `limit`, or to the last whole one.
    ///
    /// # Errors
    /// As for [`Part::index`].
    pub(crate) fn records(&self, limit: Option<u64>) -> Result<Records<'_>, HistoryError> {
        self.records_at((0, 0), limit)
    }

    /// The records from the beginning of the text to `limit`, or to the last whole one, which is
    /// found on the way. Hashes are checked if `is_checked` and the file is a plain one.
    ///
    /// # Errors
    /// The file is not a database.
    pub(crate) fn all_records(
        &self,
        limit: Option<u64>,
        is_checked: bool,
    ) -> Result<Records<'_>, HistoryError> {
        let is_checked = is_checked && !self.is_segment();
        let length = match (&self.form, limit) {
            (_, Some(limit)) => limit,
            (Form::Segment(segment), None) => segment.index().good_length,
            (Form::Plain(plain), None) => plain.file.length().map_err(|error| self.error(error))?,
        };
        let mut records = Records::new(self.text(), self.magic()?, (0, 0), length, is_checked);
        // A record may be torn, or being written.
        if limit.is_none() && !self.is_segment() {
            records.end_before_damage();
        }
        Ok(records)
    }

    /// The records from `start`, an offset and a number, on.
    ///
    /// # Errors
    /// As for [`Part::index`].
    pub(crate) fn records_at(
        &self,
        start: (u64, u64),
        limit: Option<u64>,
    ) -> Result<Records<'_>, HistoryError> {
        let limit = limit.unwrap_or(self.index()?.good_length);
        // The frames of a segment have checksums.
        let is_checked = !self.is_segment();
        Ok(Records::new(
            self.text(),
            self.magic()?,
            start,
            limit,
            is_checked,
        ))
    }

    /// The numbers of the transactions whose id may begin with `prefix`, counting from 0; `None` if
    /// the file does not know without a pass over it.
    ///
    /// # Errors
    /// The segment is damaged.
    pub(crate) fn transactions_named(
        &self,
        prefix: &str,
    ) -> Result<Option<Vec<u64>>, HistoryError> {
        let (Form::Segment(segment), Some(digits)) = (&self.form, prefix.as_bytes().first_chunk())
        else {
            return Ok(None);
        };
        let Some([beginning]) = hex::bytes(&[*digits]) else {
            return Ok(None);
        };
        segment
            .find_ids(beginning)
            .map_err(|error| self.error(error))
    }

    /// Checks everything: the checksums and hash of a segment, and the hash of each record.
    ///
    /// # Errors
    /// The first damage.
    pub fn verify(&self) -> Result<(), HistoryError> {
        if let Form::Segment(segment) = &self.form {
            segment.verify().map_err(|error| self.error(error))?;
        }
        let index = self.index()?;
        let magic = index.identity.kind.magic();
        let mut records = Records::new(self.text(), magic, (0, 0), index.good_length, true);
        let mut count = 0;
        while records.next().map_err(|error| self.error(error))?.is_some() {
            records.body().map_err(|error| self.error(error))?;
            count += 1;
        }
        if count == index.records {
            Ok(())
        } else {
            Err(self.error("the index has another number of records than the text"))
        }
    }

    /// An error about the file.
    pub(crate) fn error(&self, problem: impl ToString) -> HistoryError {
        HistoryError::file(&self.name, problem)
    }
}

impl Beginning {
    fn of(index: &Index) -> Beginning {
        let kind = index.identity.kind;
        Beginning {
            kind,
            contents: match kind {
                Kind::Standalone => (index.records - index.transactions).saturating_sub(1),
                Kind::Clustered => 0,
            },
        }
    }
}

/// Reads a plain file up to the end of its contents.
fn begin(file: &impl ReadAt) -> Result<Beginning, SegmentError> {
    let mut scan = Scan::new();
    let mut room = vec![0; SCAN_BYTES];
    let mut offset = 0;
    let mut contents = 0;
    loop {
        let got = file
            .read_at(&mut room, offset)
            .map_err(SegmentError::Read)?;
        scan.push(&room[..got], |seen| {
            contents += u64::from(seen.role == Role::Contents);
        });
        offset += got as u64;
        let is_known = scan.records() > 1 + contents || scan.magic() == Some(Magic::Clustered);
        if got == 0 || is_known || scan.is_broken() {
            break;
        }
    }
    match scan.magic() {
        Some(magic) if scan.records() > 0 || magic == Magic::Clustered => Ok(Beginning {
            kind: Kind::of(magic),
            contents,
        }),
        _ => Err(SegmentError::NotDatabase),
    }
}

/// Reads which database a plain file is, as far as its first bytes say so.
fn identify(file: &impl ReadAt) -> Option<Identity> {
    let mut scan = Scan::new();
    let mut room = vec![0; IDENTIFY_BYTES];
    let got = file.read_at(&mut room, 0).ok()?;
    scan.push(&room[..got], |_| {});
    let magic = scan.magic()?;
    scan.head()
        .name
        .is_some()
        .then(|| Identity::new(magic, scan.head()))
}

/// Makes the index of a plain file, as far as the file is whole now. Its frames are stretches of
/// the text that end with a record.
fn scan(file: &impl ReadAt) -> Result<Index, SegmentError> {
    let mut index = Index::empty();
    let mut unassigned = Vec::new();
    let mut scan = Scan::new();
    let mut room = vec![0; SCAN_BYTES];
    let mut offset = 0;
    loop {
        let got = file
            .read_at(&mut room, offset)
            .map_err(SegmentError::Read)?;
        if got == 0 {
            break;
        }
        scan.push(&room[..got], |seen| index.add(&seen, &mut unassigned));
        offset += got as u64;
        let length = scan.good_end().saturating_sub(index.text_length);
        if length >= FRAME_TEXT_BYTES as u64 {
            add_frame(&mut index, length, &mut unassigned);
        }
        if scan.is_broken() {
            break;
        }
    }
    let Some(magic) = scan.magic().filter(|_| scan.records() > 0) else {
        return Err(SegmentError::NotDatabase);
    };
    let rest = scan.good_end().saturating_sub(index.text_length);
    add_frame(&mut index, rest, &mut unassigned);
    index.identity = Identity::new(magic, scan.head());
    index.good_length = scan.good_end();
    index.text_length = file.length().map_err(SegmentError::Read)?.max(offset);
    index.bytes = index.text_length;
    Ok(index)
}

/// Adds a stretch of whole records, in as many frames as its length needs.
fn add_frame(index: &mut Index, mut length: u64, unassigned: &mut Vec<(u64, Option<i64>)>) {
    while length > 0 {
        let piece = length.min(u64::from(u32::MAX));
        // The piece is bounded by the line above.
        index.push_frame(
            index.text_length,
            piece as usize,
            piece as usize,
            unassigned,
        );
        length -= piece;
    }
}

impl Index {
    /// The last frame that may have a record at or before a date, and all before it may not be
    /// needed: the frames are in order of time, unless the clock was set back.
    pub(crate) fn frame_before(&self, date_ms: i64) -> Option<&Frame> {
        let is_before = |frame: &&Frame| frame.dates_ms.is_some_and(|(least, _)| least <= date_ms);
        self.frames.iter().rev().find(is_before)
    }
}
