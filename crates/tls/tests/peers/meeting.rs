//! Two sessions connected in memory, driven until nothing moves.

use std::io::IoSlice;

use corvid_tls::{Config, Fault, Material, Protocols, Session};

use super::made;

/// Both ends of a connection, and the fault at each.
pub(crate) struct Meeting {
    pub(crate) server: Session,
    pub(crate) client: Session,
    pub(crate) server_fault: Option<Fault>,
    pub(crate) client_fault: Option<Fault>,
}

impl Meeting {
    pub(crate) fn new(server: &Material, client: &Material) -> Meeting {
        let config = |material| Config::new(material, &made::clock()).unwrap();
        Meeting {
            server: Session::accept(&config(server)).unwrap(),
            client: Session::connect(&config(client), Some("db.example")).unwrap(),
            server_fault: None,
            client_fault: None,
        }
    }

    /// A meeting over one version of TLS.
    pub(crate) fn over(protocols: &str, server: &Material, client: &Material) -> Meeting {
        let protocols = Protocols::parse(protocols).unwrap();
        let limited = |material: &Material| Material {
            protocols,
            ..material.clone()
        };
        let mut meeting = Meeting::new(&limited(server), &limited(client));
        meeting.run();
        meeting
    }

    /// Carries bytes in both directions, a few at a time, until none are left.
    pub(crate) fn run(&mut self) {
        loop {
            let there = carry(&mut self.client, &mut self.server, &mut self.server_fault);
            let back = carry(&mut self.server, &mut self.client, &mut self.client_fault);
            if !there && !back {
                return;
            }
        }
    }

    /// Whether a text arrives in both directions.
    pub(crate) fn works(&mut self) -> bool {
        let slices = [IoSlice::new(b"[\"ec"), IoSlice::new(b"ho\"]")];
        let given = (self.client.give(&slices), self.server.give(&slices));
        self.run();
        let mut buffer = [0; 64];
        let received = [
            self.client.take(&mut buffer) == 8 && buffer.starts_with(b"[\"echo\"]"),
            self.server.take(&mut buffer) == 8 && buffer.starts_with(b"[\"echo\"]"),
        ];
        given == (8, 8) && received == [true, true] && self.faults().is_empty()
    }

    /// The faults, the client's first.
    pub(crate) fn faults(&self) -> Vec<String> {
        let both = [&self.client_fault, &self.server_fault];
        both.into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect()
    }
}

fn carry(from: &mut Session, to: &mut Session, fault: &mut Option<Fault>) -> bool {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.send(&mut bytes).unwrap();
    }
    for piece in bytes.chunks(100) {
        if fault.is_some() {
            break;
        }
        match to.feed(piece) {
            Ok(taken) => assert!(taken == piece.len() || to.is_closed()),
            Err(error) => *fault = Some(error),
        }
    }
    !bytes.is_empty()
}

/// The outcome of a meeting over both versions: `Ok`, or the error of the side that rejected the
/// other.
pub(crate) fn outcome(server: &Material, client: &Material) -> Result<(), String> {
    let outcomes = ["TLSv1.2", "TLSv1.3"].map(|protocols| {
        let mut meeting = Meeting::over(protocols, server, client);
        if meeting.works() {
            return Ok(());
        }
        // The alert for the other side is reported in addition to the reason.
        let reasons: Vec<String> = meeting
            .faults()
            .into_iter()
            .filter(|fault| !fault.contains("alert"))
            .collect();
        Err(reasons.join(", "))
    });
    assert_eq!(outcomes[0], outcomes[1], "both versions judge alike");
    let [outcome, _] = outcomes;
    outcome
}
