//! Plays: troubles that clusters of the reference server had in production, each by its name, on
//! whole servers. Time, disks, messages and the checks after each step are as in every run. Nothing
//! happens apart from the script of the play.
//!
//! docs/internals/simulation.md lists the plays next to the scenarios.

use corvid_consensus::member::{Command, Connected, Role, Status};
use corvid_log::cluster::Index;

use super::ClusterRun;
use super::clients::SimClient;
use super::faults::Faults;
use crate::server::workload::Txn;
use crate::whole_cluster::location::Location;
use crate::world::dice::Dice;
use crate::world::disk::{Crash, Troubles};
use crate::world::trace::{Trace, Tracing};

/// Number of seeds of each play.
const SEEDS: u64 = 5;

/// Any awaited event happens within this time, ms.
const WAIT_MS: u64 = 30_000;

/// Runs a play with these numbers of servers and clients on several seeds. At the end, everything
/// must be well.
fn play(servers: usize, clients: usize, act: impl Fn(&mut ClusterRun) -> Result<(), String>) {
    for seed in 0..SEEDS {
        println!("CORVID_SEED={seed}");
        let mut dice = Dice::new(seed);
        let clients = (0..clients).map(|_| SimClient::draw(&mut dice)).collect();
        let mut run = ClusterRun::of(
            dice,
            Faults::NONE,
            servers,
            clients,
            Trace::new(Tracing::None),
        );
        let outcome = run
            .advance(5000)
            .and_then(|()| act(&mut run))
            .and_then(|()| run.calm_down());
        if let Err(problem) = outcome {
            panic!("seed {seed}: {problem}");
        }
    }
}

impl ClusterRun {
    fn status(&self, host: usize) -> Option<Status> {
        let process = self.hosts[host].process.as_ref()?;
        let member = &process.pump.member;
        Some(member.status(self.hosts[host].clock.local(self.now_ms)))
    }

    fn leader(&self) -> Option<usize> {
        let leads = |host: &usize| {
            let status = self.status(*host);
            status.is_some_and(|status| status.role == Role::Leader)
        };
        let mut leaders = (0..self.hosts.len()).filter(leads);
        leaders.next().filter(|_| leaders.next().is_none())
    }

    /// Advances until a condition holds.
    fn until(&mut self, what: &str, holds: impl Fn(&mut ClusterRun) -> bool) -> Result<(), String> {
        let until_ms = self.now_ms + WAIT_MS;
        while !holds(self) {
            if self.now_ms >= until_ms {
                return Err(format!("{what}: not within {WAIT_MS} ms"));
            }
            self.advance(5)?;
        }
        Ok(())
    }

    fn await_leader(&mut self) -> Result<usize, String> {
        self.until("a leader", |run| run.leader().is_some())?;
        self.leader().ok_or_else(|| "no leader".to_owned())
    }

    /// Whether the server of a client says that it is connected to its cluster.
    fn is_served(&self, client: usize) -> bool {
        let Some(Location::Member(host)) = self.clients[client].host else {
            return false;
        };
        let process = self.hosts[host].process.as_ref();
        let row = process.and_then(|process| process.row.as_ref());
        row.is_some_and(|row| row.is_connected)
    }

    /// Lets each client whose server is connected send this many transactions. Returns their
    /// numbers.
    fn write(&mut self, count: usize) -> Vec<i64> {
        let mut numbers = Vec::new();
        for client in 0..self.clients.len() {
            if !self.is_served(client) {
                continue;
            }
            for _ in 0..count {
                let txn = Txn::plain(self.next_txn);
                if self.transact(client, &txn) {
                    numbers.push(txn.number);
                }
            }
        }
        numbers
    }

    /// Does the same, and waits until all transactions are committed. There is at least one.
    fn commit(&mut self, count: usize) -> Result<(), String> {
        let is_there = |run: &mut ClusterRun| {
            let mut clients = run.clients.iter();
            clients.all(|client| client.host.is_some())
                && run.leader().is_some()
                && (0..run.clients.len()).any(|client| run.is_served(client))
        };
        self.until("clients", is_there)?;
        let numbers = self.write(count);
        if numbers.is_empty() {
            return Err("no client has a server with a leader".to_owned());
        }
        self.until("commits", |run| {
            let mut numbers = numbers.iter();
            numbers.all(|number| run.witness.is_acknowledged(*number))
        })
    }

    fn hand_over(&mut self, to: usize) -> Result<(), String> {
        let leader = self.await_leader()?;
        let to_sid = self.hosts[to].identity.sid.0.to_string();
        self.order(leader, Command::TransferLeadership(Some(to_sid)));
        self.until("a transfer", |run| run.leader() == Some(to))
    }

    /// Takes the machine of a host down until the play starts it again.
    fn take_down(&mut self, host: usize) {
        self.hosts[host].disk.crash();
        self.stop(host, Crash::PowerLoss);
    }

    fn bring_up(&mut self, host: usize) {
        self.hosts[host].start_ms = Some(self.now_ms);
    }

    fn isolate(&mut self, host: usize) {
        for other in 0..self.hosts.len() {
            if other != host {
                self.wires.cut(host, other);
                self.wires.cut(other, host);
            }
        }
    }
}

#[test]
fn a_server_joins_while_the_leadership_makes_a_round_trip() {
    play(3, 3, |run| {
        let first = run.await_leader()?;
        let second = (first + 1) % 3;
        run.commit(10)?;
        run.compact(first);
        run.advance(200)?;
        let joiner = run.join();
        let for_ms = run.dice.below(300) as u64;
        run.advance(for_ms)?;
        run.hand_over(second)?;
        run.hand_over(first)?;
        run.until("the admission", |run| run.members().contains(&joiner))?;
        run.commit(3)
    });
}

#[test]
fn a_server_that_has_just_joined_leads_and_commits() {
    play(3, 3, |run| {
        run.commit(3)?;
        let joiner = run.join();
        run.until("the admission", |run| run.members().contains(&joiner))?;
        // The joiner may not know yet that it is a member.
        let leader = run.await_leader()?;
        let sid = run.hosts[joiner].identity.sid.0.to_string();
        run.order(leader, Command::TransferLeadership(Some(sid)));
        run.advance(1000)?;
        if run.leader() != Some(joiner) {
            run.hand_over(joiner)?;
        }
        run.commit(3)?;
        match run.status(joiner).map(|status| status.connected) {
            Some(Connected::Member) if run.leader() == Some(joiner) => Ok(()),
            other => Err(format!("the server that joined is {other:?}")),
        }
    });
}

#[test]
fn two_members_leave_while_a_third_is_down() {
    play(5, 3, |run| {
        let leader = run.await_leader()?;
        let others: Vec<usize> = (0..5).filter(|host| *host != leader).collect();
        let [down, one, two, last] = others[..] else {
            return Err("five servers".to_owned());
        };
        run.take_down(down);
        run.advance(3000)?;
        for leaving in [one, two] {
            run.order(leaving, Command::Leave);
            run.until("a leave", |run| run.hosts[leaving].ended.is_some())?;
        }
        run.commit(2)?;
        // The next removal would leave a single running server of two, so this member stays.
        run.order(last, Command::Leave);
        run.advance(5000)?;
        if run.members().len() != 3 {
            return Err(format!("the members are {:?}", run.members()));
        }
        run.commit(2)?;
        run.bring_up(down);
        // Now the member may leave.
        run.until("the last leave", |run| run.hosts[last].ended.is_some())
    });
}

#[test]
fn the_leadership_is_not_handed_to_a_server_that_is_down() {
    play(3, 3, |run| {
        let leader = run.await_leader()?;
        let dead = (leader + 1) % 3;
        run.take_down(dead);
        let sid = run.hosts[dead].identity.sid.0.to_string();
        // Once while the leader does not know yet that the server is dead, and once when it does.
        run.order(leader, Command::TransferLeadership(Some(sid.clone())));
        run.write(2);
        run.advance(3000)?;
        run.order(leader, Command::TransferLeadership(Some(sid)));
        let since_ms = run.now_ms;
        run.commit(2)?;
        if run.leader() != Some(leader) || run.now_ms > since_ms + 2000 {
            return Err("writes waited for a server that is down".to_owned());
        }
        run.bring_up(dead);
        Ok(())
    });
}

#[test]
fn a_member_with_an_old_log_disturbs_nobody() {
    play(3, 3, |run| {
        let leader = run.await_leader()?;
        let term = run.status(leader).map(|status| status.term);
        let old = (leader + 1) % 3;
        run.isolate(old);
        // The isolated member's clients see that it has no leader.
        run.advance(5000)?;
        run.commit(1)?;
        // Many election timeouts pass. The isolated member asks for prevotes, and its term stays.
        run.advance(30_000)?;
        run.wires.mend_all();
        run.advance(10_000)?;
        let status = run.status(leader);
        if run.leader() != Some(leader) || status.map(|status| status.term) != term {
            return Err("the return of a member has ended a leadership".to_owned());
        }
        run.commit(1)
    });
}

#[test]
fn a_member_that_loses_power_behind_a_compaction_has_lost_nothing() {
    for operations in 1..20 {
        play(3, 2, |run| {
            let host = run.dice.below(3);
            run.commit(5)?;
            run.compact(host);
            run.hosts[host].disk.crash_in(operations);
            run.write(3);
            run.advance(2000)?;
            if run.hosts[host].process.is_some() {
                run.take_down(host);
                run.bring_up(host);
            }
            run.advance(100)?;
            run.until("a leader", |run| run.leader().is_some())?;
            run.commit(2)
        });
    }
}

#[test]
fn a_second_snapshot_overtakes_the_first() {
    let mut overtaken = 0;
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let clients = (0..2).map(|_| SimClient::draw(&mut dice)).collect();
        let mut run = ClusterRun::of(dice, Faults::NONE, 3, clients, Trace::new(Tracing::None));
        overtaken += usize::from(
            second_snapshot(&mut run)
                .and_then(|is_overtaken| run.calm_down().map(|()| is_overtaken))
                .unwrap_or_else(|problem| panic!("seed {seed}: {problem}")),
        );
    }
    assert!(overtaken > 0, "no transfer was under way");
}

/// Returns whether a new snapshot was made while another was being sent.
fn second_snapshot(run: &mut ClusterRun) -> Result<bool, String> {
    run.advance(5000)?;
    let joiner = {
        run.commit(20)?;
        let leader = run.await_leader()?;
        run.compact(leader);
        run.advance(500)?;
        run.join()
    };
    let is_receiving = |run: &mut ClusterRun| {
        let leader = run.leader().and_then(|leader| run.status(leader));
        let mut servers = leader.iter().flat_map(|status| &status.servers);
        let is_sent = servers.any(|server| server.snapshot.is_some());
        is_sent || run.members().contains(&joiner)
    };
    run.until("a transfer", is_receiving)?;
    let is_overtaken = !run.members().contains(&joiner);
    let leader = run.await_leader()?;
    let before = run.status(leader).map(|status| status.log_start);
    // The peer stops in the middle of the transfer.
    run.isolate(joiner);
    run.commit(5)?;
    run.compact(leader);
    run.until("the second snapshot", |run| {
        run.status(leader).map(|status| status.log_start) > before
    })?;
    run.wires.mend_all();
    run.until("the admission", |run| run.members().contains(&joiner))?;
    Ok(is_overtaken)
}

#[test]
fn all_servers_lose_power_at_once() {
    play(3, 4, |run| {
        for _ in 0..4 {
            run.write(3);
            let for_ms = run.dice.below(8) as u64;
            run.advance(for_ms)?;
            for host in 0..3 {
                run.take_down(host);
            }
            run.advance(1000)?;
            for host in 0..3 {
                run.bring_up(host);
            }
            run.await_leader()?;
            run.until("clients", |run| {
                run.clients.iter().all(|client| client.host.is_some())
            })?;
            run.commit(1)?;
        }
        Ok(())
    });
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_record_stops_nobody() {
    play(3, 3, |run| {
        let host = run.dice.below(3);
        let capacity = Some(run.hosts[host].disk.used() + run.dice.below(200));
        let full = Troubles {
            capacity,
            ..Troubles::default()
        };
        run.hosts[host].disk.set_troubles(full);
        // Clients of this server wait; the others do not.
        run.write(2);
        run.advance(5000)?;
        run.avoided = Some(Location::Member(host));
        run.clients_lose(Location::Member(host));
        run.commit(1)?;
        // The server restarts while the disk is full.
        run.take_down(host);
        run.bring_up(host);
        run.advance(5000)?;
        if run.hosts[host].process.is_none() {
            return Err("the server does not start".to_owned());
        }
        run.commit(1)?;
        run.avoided = None;
        run.hosts[host].disk.set_troubles(Troubles::default());
        Ok(())
    });
}

#[test]
fn a_joining_server_whose_snapshot_breaks_off_never_leads_alone() {
    play(3, 2, |run| {
        run.commit(10)?;
        let joiner = run.join();
        let is_on_the_way = |run: &mut ClusterRun| {
            let leader = run.leader().and_then(|leader| run.status(leader));
            let mut servers = leader.iter().flat_map(|status| &status.servers);
            servers.any(|server| server.snapshot.is_some()) || run.members().contains(&joiner)
        };
        run.until("a transfer", is_on_the_way)?;
        if run.members().contains(&joiner) {
            return Ok(());
        }
        run.take_down(joiner);
        run.isolate(joiner);
        run.bring_up(joiner);
        for _ in 0..100 {
            run.advance(300)?;
            let status = run.status(joiner).ok_or("it runs")?;
            if status.role == Role::Leader || status.connected != Connected::Joining {
                return Err(format!(
                    "alone it is {:?}, {:?}",
                    status.role, status.connected
                ));
            }
        }
        run.wires.mend_all();
        run.until("the admission", |run| run.members().contains(&joiner))
    });
}

#[test]
fn a_server_that_is_gone_for_ever_is_replaced() {
    play(3, 3, |run| {
        for _ in 0..2 {
            let leader = run.await_leader()?;
            let members = run.members();
            let gone = members.iter().copied().find(|member| *member != leader);
            let gone = gone.ok_or("three members")?;
            run.take_down(gone);
            run.hosts[gone].ended = Some("its machine is gone".to_owned());
            run.commit(1)?;
            let address = run.hosts[gone].identity.address.clone();
            let leader = run.await_leader()?;
            run.order(leader, Command::Kick(address));
            run.until("the removal", |run| !run.members().contains(&gone))?;
            let joiner = run.join();
            run.until("the admission", |run| run.members().contains(&joiner))?;
            run.commit(1)?;
        }
        Ok(())
    });
}

#[test]
fn compactions_of_all_members_at_once_cost_no_election() {
    play(3, 4, |run| {
        run.commit(10)?;
        run.faults.hosts.disk_ms = 60;
        let leaderships = run.witness.leaderships();
        let starts = |run: &ClusterRun| -> Vec<Option<Index>> {
            let status = |host| run.status(host).map(|status| status.log_start);
            (0..3).map(status).collect()
        };
        let before = starts(run);
        for host in 0..3 {
            run.compact(host);
        }
        run.commit(10)?;
        run.until("all compactions", |run| {
            let pairs = starts(run).into_iter().zip(before.clone());
            pairs.into_iter().all(|(now, then)| now > then)
        })?;
        run.commit(2)?;
        if run.witness.leaderships() == leaderships {
            return Ok(());
        }
        Err("another member leads".to_owned())
    });
}

#[test]
fn a_conversion_costs_none_of_many_clients_its_session() {
    play(3, 60, |run| {
        run.until("clients", |run| {
            run.clients.iter().all(|client| client.host.is_some())
        })?;
        run.commit(1)?;
        let moves = run.summary.moves;
        run.convert(7);
        run.write(1);
        run.until("the conversion", |run| run.summary.conversions == 1)?;
        run.commit(1)?;
        if run.summary.moves == moves {
            return Ok(());
        }
        Err("clients were disconnected".to_owned())
    });
}

#[test]
fn clients_that_want_the_leader_follow_it_and_miss_nothing() {
    play(3, 6, |run| {
        for client in &mut run.clients {
            client.wants_leader = true;
        }
        for round in 0..6 {
            let leader = run.await_leader()?;
            run.write(2);
            if round % 2 == 0 {
                run.hand_over((leader + 1) % 3)?;
            } else {
                run.take_down(leader);
                run.advance(50)?;
                run.bring_up(leader);
            }
            run.await_leader()?;
            run.until("clients at the leader", |run| {
                let leader = run.leader();
                let mut clients = run.clients.iter();
                leader.is_some()
                    && clients.all(|client| client.host == leader.map(Location::Member))
            })?;
            run.commit(1)?;
        }
        Ok(())
    });
}

#[test]
fn a_member_of_an_older_list_is_found_out() {
    play(3, 2, |run| {
        run.commit(2)?;
        let joiner = run.join();
        let has_snapshot = |run: &mut ClusterRun| {
            let process = run.hosts[joiner].process.as_ref();
            process.is_some_and(|process| process.machine.is_some())
        };
        run.until("its contents", has_snapshot)?;
        run.keep_copy(joiner);
        run.until("the admission", |run| run.members().contains(&joiner))?;
        run.commit(2)?;
        run.advance(3000)?;
        let counted = run.counted(joiner).ok_or("it is counted")?;
        let copy = run.hosts[joiner].copy.take().ok_or("a copy")?;
        run.lose_promises(joiner, counted, copy)?;
        match run.summary.found_out + run.summary.refilled {
            1 => Ok(()),
            _ => Err("nobody has found out".to_owned()),
        }
    });
}
