//! The rules of docs/spec/cli.md 5.4, each with a certificate that follows it and one that does
//! not.

use corvid_tls::Trust;
use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, date_time_ymd};

use super::made::{
    Issuer, Own, authority_params, intermediate, params, root, with_purposes, with_usages,
};
use super::meeting::{Meeting, outcome};

/// The outcome for a server with this certificate and a client that trusts this file; the client's
/// own certificate is good.
fn server_with(own: &Own, trusted: &str) -> Result<(), String> {
    let clients = root(authority_params("clients"));
    let client = Own::issued(&params("client"), &clients);
    outcome(&own.trusting(&clients.pem()), &client.trusting(trusted))
}

/// The outcome for a client with this certificate and a server that trusts this file.
fn client_with(own: &Own, trusted: &str) -> Result<(), String> {
    let servers = root(authority_params("servers"));
    let server = Own::issued(&params("server"), &servers);
    outcome(&server.trusting(trusted), &own.trusting(&servers.pem()))
}

fn both_with(own: &Own, trusted: &str) -> Result<(), String> {
    let outcomes = [server_with(own, trusted), client_with(own, trusted)];
    assert_eq!(outcomes[0], outcomes[1], "both directions judge alike");
    let [outcome, _] = outcomes;
    outcome
}

fn refused(reason: &str) -> Result<(), String> {
    Err(format!("certificate verify failed ({reason})"))
}

const UNKNOWN: &str = "unable to get issuer certificate";

#[test]
fn signed_by_a_trusted_root() {
    let authority = root(authority_params("ca"));
    let own = Own::issued(&params("leaf id:1"), &authority);
    assert_eq!(both_with(&own, &authority.pem()), Ok(()));
    let other = root(authority_params("ca"));
    // The name matches, the signature does not.
    assert!(both_with(&own, &other.pem()).is_err());
    let stranger = root(authority_params("stranger"));
    assert_eq!(both_with(&own, &stranger.pem()), refused(UNKNOWN));
    // The right root may be anywhere in the file.
    assert_eq!(
        both_with(&own, &(stranger.pem() + &other.pem() + &authority.pem())),
        Ok(())
    );
}

#[test]
fn self_signed_and_known() {
    let own = Own::self_signed(&params("self"));
    assert_eq!(both_with(&own, &own.certificate), Ok(()));
    let authority = Own::self_signed(&authority_params("self"));
    assert_eq!(both_with(&authority, &authority.certificate), Ok(()));
    // The name matches, the signature does not.
    assert!(both_with(&own, &authority.certificate).is_err());
    // A leaf is not an authority, even if it is trusted as a leaf.
    let fake = Issuer::self_signed(params("fake"), rcgen::KeyPair::generate().unwrap()).unwrap();
    let below = Own::issued(&params("below"), &fake);
    assert_eq!(
        both_with(&below, &fake.pem()),
        refused("unsuitable certificate purpose")
    );
}

#[test]
fn an_intermediate_alone_is_no_anchor() {
    let top = root(authority_params("top"));
    let middle = intermediate(authority_params("middle"), &top);
    let own = Own::issued(&params("leaf"), &middle);
    assert_eq!(both_with(&own, &middle.pem()), refused(UNKNOWN));
    assert_eq!(both_with(&own, &(middle.pem() + &top.pem())), Ok(()));
    assert_eq!(both_with(&own, &top.pem()), refused(UNKNOWN));
    // An authority that acts as a peer takes the other path through the code.
    let serving = Own::issued(&authority_params("serving"), &middle);
    assert_eq!(both_with(&serving, &middle.pem()), refused(UNKNOWN));
    assert_eq!(both_with(&serving, &(middle.pem() + &top.pem())), Ok(()));
}

#[test]
fn intermediates_that_are_sent_complete_the_path() {
    let top = root(authority_params("top"));
    let middle = intermediate(authority_params("middle"), &top);
    for leaf in [params("leaf"), authority_params("serving")] {
        let own = Own::issued(&leaf, &middle);
        let client = Own::issued(&params("client"), &top);
        let mut server = own.trusting(&top.pem());
        server.extra_chain = corvid_tls::pem::certificates(middle.pem().as_bytes()).unwrap();
        assert_eq!(outcome(&server, &client.trusting(&top.pem())), Ok(()));
    }
}

#[test]
fn dates_hold_for_leaf_and_anchor() {
    let authority = root(authority_params("ca"));
    let mut old = params("old");
    old.not_after = date_time_ymd(2021, 1, 1);
    let mut new = params("new");
    new.not_before = date_time_ymd(2039, 1, 1);
    let issued = |params| Own::issued(&params, &authority);
    let expired = refused("certificate has expired");
    assert_eq!(both_with(&issued(old.clone()), &authority.pem()), expired);
    assert_eq!(
        both_with(&issued(new), &authority.pem()),
        refused("certificate is not yet valid")
    );
    let own = Own::self_signed(&old);
    assert_eq!(both_with(&own, &own.certificate), expired);
    let mut past = authority_params("past");
    past.not_after = date_time_ymd(2022, 1, 1);
    let past = root(past);
    assert_eq!(
        both_with(&Own::issued(&params("leaf"), &past), &past.pem()),
        expired
    );
    let serving = Own::issued(&authority_params("serving"), &past);
    assert_eq!(both_with(&serving, &past.pem()), expired);
}

#[test]
fn extended_usages_name_the_side() {
    let authority = root(authority_params("ca"));
    let server_only = with_purposes(params("s"), &[ExtendedKeyUsagePurpose::ServerAuth]);
    let client_only = with_purposes(params("c"), &[ExtendedKeyUsagePurpose::ClientAuth]);
    let purpose = refused("unsuitable certificate purpose");
    let (server_only, client_only) = (
        Own::issued(&server_only, &authority),
        Own::issued(&client_only, &authority),
    );
    assert_eq!(server_with(&server_only, &authority.pem()), Ok(()));
    assert_eq!(client_with(&client_only, &authority.pem()), Ok(()));
    assert_eq!(server_with(&client_only, &authority.pem()), purpose);
    assert_eq!(client_with(&server_only, &authority.pem()), purpose);
}

#[test]
fn key_usages_of_a_leaf_allow_signing() {
    let authority = root(authority_params("ca"));
    let issued =
        |usages: &[KeyUsagePurpose]| Own::issued(&with_usages(params("u"), usages), &authority);
    let purpose = refused("unsuitable certificate purpose");
    assert_eq!(
        both_with(
            &issued(&[KeyUsagePurpose::DigitalSignature]),
            &authority.pem()
        ),
        Ok(())
    );
    assert_eq!(
        both_with(&issued(&[KeyUsagePurpose::KeyAgreement]), &authority.pem()),
        Ok(())
    );
    assert_eq!(
        both_with(&issued(&[KeyUsagePurpose::CrlSign]), &authority.pem()),
        purpose
    );
    let encipherment = issued(&[KeyUsagePurpose::KeyEncipherment]);
    assert_eq!(server_with(&encipherment, &authority.pem()), Ok(()));
    assert_eq!(client_with(&encipherment, &authority.pem()), purpose);
}

#[test]
fn issuers_must_be_authorities() {
    let top = root(authority_params("top"));
    let purpose = refused("unsuitable certificate purpose");
    let no_signing = with_usages(authority_params("middle"), &[KeyUsagePurpose::CrlSign]);
    let middle = intermediate(no_signing, &top);
    let own = Own::issued(&params("leaf"), &middle);
    assert_eq!(both_with(&own, &(top.pem() + &middle.pem())), purpose);
    let mut short = authority_params("short");
    short.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let short = root(short);
    let middle = intermediate(authority_params("middle"), &short);
    for leaf in [params("leaf"), authority_params("serving")] {
        let own = Own::issued(&leaf, &middle);
        assert!(both_with(&own, &(short.pem() + &middle.pem())).is_err());
    }
    // A root without constraints is judged by its key usage.
    let usage_only = root(with_usages(
        params("usage"),
        &[KeyUsagePurpose::KeyCertSign],
    ));
    assert_eq!(
        both_with(
            &Own::issued(&params("leaf"), &usage_only),
            &usage_only.pem()
        ),
        Ok(())
    );
}

#[test]
fn trust_in_everybody_asks_clients_for_nothing() {
    let server = Own::self_signed(&params("server"));
    let client = Own::self_signed(&params("client"));
    let (server, client) = (
        server.material(Trust::Everybody),
        client.material(Trust::Everybody),
    );
    assert_eq!(outcome(&server, &client), Ok(()));
    let mut meeting = Meeting::over("TLSv1.2+", &server, &client);
    assert!(meeting.works());
    assert_eq!(meeting.server.peer_certificates().len(), 0);
    assert_eq!(meeting.client.peer_name().as_deref(), Some("server"));
}

#[test]
fn the_first_server_is_learnt_from_and_clients_wait() {
    let authority = root(authority_params("ca"));
    let server = Own::issued(&params("server"), &authority).trusting(&authority.pem());
    let client = Own::issued(&params("client"), &authority);
    let mut meeting = Meeting::over("TLSv1.2+", &server, &client.material(Trust::FirstServer));
    assert!(meeting.works() && meeting.client.is_bootstrap());
    let learnt = meeting.client.peer_certificates().last().unwrap();
    assert_eq!(
        corvid_tls::pem::encode(learnt).replace('\n', ""),
        authority.pem().replace("\r", "").replace('\n', "")
    );
    let early = Own::issued(&params("early"), &authority).material(Trust::FirstServer);
    assert_eq!(
        outcome(&early, &client.trusting(&authority.pem())),
        refused(UNKNOWN)
    );
}

#[test]
fn the_chain_is_completed_from_the_ca_file() {
    let top = root(authority_params("top"));
    let middle = intermediate(authority_params("middle"), &top);
    let own = Own::issued(&params("leaf"), &middle);
    let sent = |server, client: &Own, trusted: &str| {
        let meeting = Meeting::over("TLSv1.3", &server, &client.trusting(trusted));
        meeting.client.peer_certificates().len()
    };
    let client = Own::issued(&params("client"), &top);
    let both = middle.pem() + &top.pem();
    assert_eq!(sent(own.trusting(&both), &client, &both), 3);
    assert_eq!(sent(own.trusting(&top.pem()), &client, &both), 1);
    let mut extra = own.trusting(&both);
    extra.extra_chain = corvid_tls::pem::certificates(middle.pem().as_bytes()).unwrap();
    assert_eq!(sent(extra, &client, &both), 2);
}
