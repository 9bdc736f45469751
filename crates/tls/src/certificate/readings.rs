//! Certificates as x509-parser reads them, compared with our reading: sound ones, and the same with
//! changed bytes.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Certificate, CertificateDer};

fn sound() -> Vec<CertificateDer<'static>> {
    let key = KeyPair::generate().unwrap();
    let plain = || {
        let mut params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(DnType::CountryName, "US");
        name.push(DnType::OrganizationName, "Open vSwitch");
        name.push(DnType::CustomDnType(vec![2, 5, 4, 5]), "17");
        name.push(DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99_999]), "x");
        name.push(DnType::CommonName, "Zo\u{eb}");
        params.not_before = date_time_ymd(1999, 12, 31);
        params.not_after = date_time_ymd(2060, 2, 29);
        params
    };
    let mut authority = plain();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(3));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let mut leaf = plain();
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::DecipherOnly,
    ];
    leaf.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::CodeSigning,
    ];
    leaf.use_authority_key_identifier_extension = true;
    [plain(), authority, leaf]
        .map(|params| params.self_signed(&key).unwrap().der().clone())
        .into()
}

/// Panics if `parsed` differs from the other reading of the same bytes.
fn compare(parsed: &Certificate, der: &[u8]) {
    let (rest, other) = X509Certificate::from_der(der).expect("the other reads it too");
    assert!(rest.is_empty());
    assert_eq!(parsed.subject, other.subject().as_raw());
    assert_eq!(parsed.issuer, other.issuer().as_raw());
    assert_eq!(parsed.key.as_ref(), other.public_key().raw);
    assert_eq!(parsed.version, other.version().0.saturating_add(1));
    let validity = other.validity();
    assert_eq!(parsed.not_before_s, validity.not_before.timestamp());
    assert_eq!(parsed.not_after_s, validity.not_after.timestamp());
    let common_name = other.subject().iter_common_name().next();
    assert_eq!(parsed.common_name.is_some(), common_name.is_some());
    let registry = x509_parser::objects::oid_registry();
    let line: String = (other.subject().iter_attributes())
        .map(|attribute| {
            let oid = attribute.attr_type();
            let short = x509_parser::objects::oid2abbrev(oid, registry)
                .map_or_else(|_| oid.to_id_string(), str::to_owned);
            format!("/{short}={}", String::from_utf8_lossy(attribute.as_slice()))
        })
        .collect();
    // For identifiers whose first part is 2, x509-parser writes a wrong text.
    let is_dotted_well = (other.subject().iter_attributes())
        .all(|attribute| attribute.attr_type().as_bytes()[0] < 80 || !line.contains('.'));
    if is_dotted_well {
        assert_eq!(parsed.subject_line, line);
    }
    let (mut constraints, mut key_usage, mut extended) = (None, None, None);
    for extension in other.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::BasicConstraints(found) => {
                constraints = Some((found.ca, found.path_len_constraint));
            }
            ParsedExtension::KeyUsage(found) => key_usage = Some(found.flags),
            ParsedExtension::ExtendedKeyUsage(found) => {
                extended = Some((found.server_auth, found.client_auth));
            }
            _ => {}
        }
    }
    // Where the readings differ, ours must be the stricter one: an extension that it does not parse
    // counts as unknown.
    let ours = parsed.constraints;
    let ours = ours.map(|found| (found.is_ca, found.path_length_max));
    assert!(ours == constraints || ours.is_none(), "{ours:?}");
    let ours = parsed.key_usage;
    assert!(ours == key_usage || ours.is_none(), "{ours:?}");
    let ours = parsed.extended_usage;
    let ours = ours.map(|found| (found.is_server, found.is_client));
    assert!(ours == extended || ours.is_none(), "{ours:?}");
}

#[test]
fn sound_certificates_are_read_alike() {
    let [plain, authority, leaf] = &sound()[..] else {
        panic!("three were made");
    };
    for der in [plain, authority, leaf] {
        let parsed = Certificate::parse(der).unwrap();
        compare(&parsed, der);
        assert!(!parsed.has_unknown_critical && !parsed.is_key_weak && !parsed.is_signature_weak);
    }
    let authority = Certificate::parse(authority).unwrap();
    let constraints = authority.constraints.unwrap();
    assert_eq!(
        (constraints.is_ca, constraints.path_length_max),
        (true, Some(3))
    );
    assert_eq!(authority.key_usage, Some(1 << 5 | 1 << 6));
    let leaf = Certificate::parse(leaf).unwrap();
    assert!(!leaf.constraints.unwrap().is_ca);
    assert_eq!(leaf.key_usage, Some(1 | 1 << 8));
    let usage = leaf.extended_usage.unwrap();
    assert!(usage.is_client && !usage.is_server);
    assert_eq!(leaf.common_name(), Some("Zo\u{eb}"));
}

#[test]
fn changed_certificates_are_read_alike_or_refused() {
    let mut state: u64 = 0x5eed_0000_0000_0001;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let mut read = 0;
    for der in sound() {
        for _ in 0..10_000 {
            let mut changed = der.to_vec();
            for _ in 0..=below(2) {
                let at = below(changed.len());
                changed[at] = below(256) as u8;
            }
            let changed = CertificateDer::from(changed);
            if let Ok(parsed) = Certificate::parse(&changed) {
                compare(&parsed, &changed);
                read += 1;
            }
        }
    }
    assert!(read > 1_000, "{read}");
}
