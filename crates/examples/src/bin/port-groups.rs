//! Keeps port groups in step with logical switch ports: `port-groups REMOTES`. The code is in
//! `corvid_examples::groups`.

use corvid::blocking::Client;
use corvid_examples::groups::Controller;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let remotes = std::env::args()
        .nth(1)
        .ok_or("usage: port-groups REMOTES")?;
    let (mut controller, class) = Controller::new()?;
    let mut client = Client::connect(class, &remotes)?;
    client.wait_for_contents(None)?;
    controller.learn(client.idl());
    loop {
        let seqno = client.change_seqno();
        match controller.step(&mut client, None)? {
            0 => drop(client.wait_for_change(seqno, None)?),
            moved => eprintln!("moved {moved} ports"),
        }
    }
}
