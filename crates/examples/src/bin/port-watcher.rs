//! Prints the changes of logical switch ports: `port-watcher REMOTES`, for example
//! `port-watcher unix:/var/run/ovn/ovnnb_db.sock`.

use std::io;

use corvid::blocking::Client;
use corvid_examples::watcher;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let remotes = std::env::args()
        .nth(1)
        .ok_or("usage: port-watcher REMOTES")?;
    let mut client = Client::connect(watcher::watched(), &remotes)?;
    let mut out = io::stdout().lock();
    loop {
        let seqno = client.change_seqno();
        client.wait_for_change(seqno, None)?;
        watcher::show(client.idl_mut(), &mut out)?;
    }
}
