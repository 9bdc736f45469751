//! `doctor`: judges the servers by the table of [`checks`](crate::doctor), and prints what is
//! wrong with its evidence and what to do.

use corvid_json::Value;
use corvid_shell::output;
use corvid_shell::terminal::{Colour, Painted};

use super::Output;
use super::servers::{report_notes, settings_of, table};
use crate::chain_run::print_outputs;
use crate::doctor::{self, Diagnosis, Verdict, gather};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::grammar::chain::Invocation;
use crate::settings::Settings;

/// The columns of the machine-readable forms.
pub(super) const HEADINGS: [&str; 7] = [
    "check", "verdict", "server", "database", "evidence", "advice", "command",
];

pub(super) fn doctor(invocation: &Invocation, settings: &Settings) -> Result<(), Failure> {
    let settings = settings_of(invocation, settings)?;
    let facts = gather::facts(invocation, &invocation.args, &settings)?;
    report_notes(&facts.fleet);
    let mut all = doctor::diagnose(&facts);
    if let Some(wanted) = &settings.database {
        all.retain(|it| {
            let about = it.finding.database.as_ref();
            about.is_none_or(|database| database == wanted)
        });
    }
    if !settings.quiet {
        match settings.objects.is_some() || settings.format.is_some() {
            true => {
                let rows = all.iter().map(|it| row(it, &facts.fleet)).collect();
                let outputs = [Output::Listing(table(&HEADINGS, rows, &settings))];
                print_outputs(outputs.into_iter(), &settings)?;
            }
            false => {
                let mut page = Painted::for_output();
                describe(&mut page, &all, &facts.fleet);
                match settings.no_pager {
                    true => output::show(&page)?,
                    false => output::show_page(&page)?,
                }
            }
        }
        output::flush()?;
    }
    match all.iter().any(is_wrong) {
        true => Err(Failure::silent()),
        false => Ok(()),
    }
}

fn is_wrong(diagnosis: &Diagnosis) -> bool {
    matches!(diagnosis.finding.verdict, Verdict::Bad | Verdict::Warn)
}

/// All findings as a table, for the bundle.
pub(super) fn rows(all: &[Diagnosis], fleet: &Fleet) -> Vec<Vec<Value>> {
    all.iter().map(|it| row(it, fleet)).collect()
}

fn row(diagnosis: &Diagnosis, fleet: &Fleet) -> Vec<Value> {
    let finding = &diagnosis.finding;
    let text = |text: Option<&str>| match text {
        Some(text) if !text.is_empty() => Value::string(text),
        _ => Value::Null,
    };
    vec![
        Value::string(diagnosis.check.name),
        Value::string(finding.verdict.word()),
        text(Some(&finding.server)),
        text(finding.database.as_deref()),
        Value::string(&finding.evidence),
        text(is_wrong(diagnosis).then_some(diagnosis.check.advice)),
        text(diagnosis.command(fleet).as_deref()),
    ]
}

/// The wrong findings, each with its advice; then the names of the other checks.
fn describe(page: &mut Painted, all: &[Diagnosis], fleet: &Fleet) {
    for diagnosis in all.iter().filter(|it| is_wrong(it)) {
        let finding = &diagnosis.finding;
        let colour = match finding.verdict {
            Verdict::Bad => Colour::Red,
            _ => Colour::Yellow,
        };
        page.part(colour, &format!("{:<5}", finding.verdict.word()));
        page.part(Colour::Bold, diagnosis.check.name);
        let about = [Some(finding.server.as_str()), finding.database.as_deref()];
        for part in about.into_iter().flatten().filter(|part| !part.is_empty()) {
            page.part(Colour::Plain, &format!(" {part}"));
        }
        page.part(Colour::Plain, &format!(": {}", finding.evidence));
        page.end_line();
        page.part(Colour::Plain, &format!("     {}", diagnosis.check.advice));
        page.end_line();
        if let Some(command) = diagnosis.command(fleet) {
            page.part(Colour::Plain, &format!("         {command}"));
            page.end_line();
        }
    }
    // A check that found something wrong somewhere is not listed as fine elsewhere.
    let wrong = names(all, is_wrong);
    let mut fine = names(all, |it| it.finding.verdict == Verdict::Ok);
    fine.retain(|name| !wrong.contains(name));
    let mut undecided = names(all, |it| it.finding.verdict == Verdict::Unknown);
    undecided.retain(|name| !wrong.contains(name) && !fine.contains(name));
    if !fine.is_empty() {
        page.part(Colour::Green, &format!("{:<5}", Verdict::Ok.word()));
        page.part(Colour::Plain, &fine.join(", "));
        page.end_line();
    }
    if !undecided.is_empty() {
        page.part(Colour::Plain, &format!("?    {}", undecided.join(", ")));
        page.end_line();
    }
    for reason in reasons(all) {
        page.part(Colour::Plain, &format!("     {reason}"));
        page.end_line();
    }
    let count = fine.len() + undecided.len() + wrong.len();
    page.part(
        Colour::Plain,
        &format!(
            "{count} checks: {} found something, {} could not be decided",
            wrong.len(),
            undecided.len()
        ),
    );
    page.end_line();
}

/// The checks with such a finding, each once, in the order of the findings.
fn names(all: &[Diagnosis], is_one: impl Fn(&Diagnosis) -> bool) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for diagnosis in all.iter().filter(|it| is_one(it)) {
        if !names.contains(&diagnosis.check.name) {
            names.push(diagnosis.check.name);
        }
    }
    names
}

/// Why checks are undecided, each reason once with its servers.
fn reasons(all: &[Diagnosis]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for it in all
        .iter()
        .filter(|it| it.finding.verdict == Verdict::Unknown)
    {
        let (server, evidence) = (it.finding.server.as_str(), it.finding.evidence.as_str());
        match reasons.iter_mut().find(|(reason, _)| *reason == evidence) {
            None => reasons.push((evidence, vec![server])),
            Some((_, servers)) if servers.contains(&server) => {}
            Some((_, servers)) => servers.push(server),
        }
    }
    let of = |(reason, servers): (&str, Vec<&str>)| {
        let servers: Vec<&str> = servers.into_iter().filter(|it| !it.is_empty()).collect();
        let hint = match reason {
            "the status is not known" => {
                ": name its control socket with --ctl, or its pages with --metrics"
            }
            "the metrics are not known" => ": name its pages with --metrics",
            _ => "",
        };
        match servers.is_empty() {
            true => format!("{reason}{hint}"),
            false => format!("{}: {reason}{hint}", servers.join(", ")),
        }
    };
    reasons.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::database;

    #[test]
    fn what_is_wrong_comes_first_with_what_to_do() {
        let facts = database(r#""storage":{"failed":true},"has_contents":true"#);
        let all = doctor::diagnose(&facts);
        let mut page = Painted::new(true, false);
        describe(&mut page, &all, &facts.fleet);
        let text = page.as_str();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "bad  storage tcp:192.0.2.1:6641 Lab: the last commit was not stored"
        );
        assert_eq!(
            lines[2],
            "         ovs-appctl -t /run/x.ctl ovsdb-server/get-db-storage-status Lab"
        );
        assert!(text.contains("\nok   "), "{text}");
        assert!(text.contains(" 1 found something"), "{text}");
    }

    #[test]
    fn hostile_evidence_is_escaped() {
        let facts = database(r#""relay":{"state":"connecting","source":"x\n\u001b[2J"}"#);
        let mut page = Painted::new(true, false);
        describe(&mut page, &doctor::diagnose(&facts), &facts.fleet);
        assert!(
            page.as_str().contains("x\\n\\u001b[2J"),
            "{}",
            page.as_str()
        );
    }
}
