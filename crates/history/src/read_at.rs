//! Random access to the bytes of a file.

/// A file that is read at any offset. Several readers may share it.
pub trait ReadAt {
    /// Fills a prefix of `room` from `offset` and returns its length; 0 at the end of the file.
    ///
    /// # Errors
    /// The operating system's error text, without a file name.
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// The operating system's error text, without a file name.
    fn length(&self) -> Result<u64, String>;
}

impl ReadAt for [u8] {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let rest = rest.unwrap_or_default();
        let got = rest.len().min(room.len());
        room[..got].copy_from_slice(&rest[..got]);
        Ok(got)
    }

    fn length(&self) -> Result<u64, String> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.as_slice().read_at(room, offset)
    }

    fn length(&self) -> Result<u64, String> {
        Ok(self.len() as u64)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        (**self).read_at(room, offset)
    }

    fn length(&self) -> Result<u64, String> {
        (**self).length()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Box<T> {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        (**self).read_at(room, offset)
    }

    fn length(&self) -> Result<u64, String> {
        (**self).length()
    }
}

/// Fills all of `room` from `offset`.
///
/// # Errors
/// Reading failed, or the file ends before (`End of file`).
pub(crate) fn read_exactly<F: ReadAt + ?Sized>(
    file: &F,
    mut room: &mut [u8],
    mut offset: u64,
) -> Result<(), String> {
    while !room.is_empty() {
        match file.read_at(room, offset)? {
            0 => return Err("End of file".to_owned()),
            got => {
                room = &mut room[got..];
                offset += got as u64;
            }
        }
    }
    Ok(())
}
