//! Unix socket addresses of any length.
//!
//! An address holds a name of 107 bytes. A longer name is reached through a descriptor of its
//! directory: `/proc/self/fd/N/BASE`. The descriptor must stay open until bind or connect has
//! returned, so the address owns it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use socket2::SockAddr;

/// The maximum length of a name in `sockaddr_un`, without the terminator, bytes.
const NAME_BYTES_MAX: usize = 107;

/// An address for one bind or connect.
#[derive(Debug)]
pub(crate) struct UnixAddress {
    address: SockAddr,
    /// Keeps `/proc/self/fd/N` valid.
    _directory: Option<File>,
}

impl UnixAddress {
    /// The address of a socket with this name.
    ///
    /// # Errors
    /// The directory of a long name cannot be opened, or even the base name is too long.
    pub(crate) fn new(path: &Path) -> io::Result<UnixAddress> {
        if path.as_os_str().as_bytes().len() <= NAME_BYTES_MAX {
            return Ok(UnixAddress {
                address: SockAddr::unix(path)?,
                _directory: None,
            });
        }
        let (Some(parent), Some(base)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        };
        let directory = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(parent)?;
        let short = Path::new("/proc/self/fd")
            .join(directory.as_raw_fd().to_string())
            .join(base);
        if short.as_os_str().as_bytes().len() > NAME_BYTES_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        Ok(UnixAddress {
            address: SockAddr::unix(short)?,
            _directory: Some(directory),
        })
    }

    pub(crate) fn as_sock_addr(&self) -> &SockAddr {
        &self.address
    }
}
