//! Certificates of the cases' own.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::Path;

/// Writes an authority (`ca.pem`), and a certificate and a key that it has signed for each of these (`NAME.pem`, `NAME.key`) with
/// their DNS names.
pub fn write(folder: &Path, names: &[(&str, &str)]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let key = KeyPair::generate()?;
    let mut params = params(&[], "the cases' authority")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.join("ca.pem"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    for (name, dns) in names {
        let key = KeyPair::generate()?;
        let certificate = self::params(&[dns], dns)?.signed_by(&key, &issuer)?;
        fs::write(folder.join(format!("{name}.pem")), certificate.pem())?;
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem())?;
    }
    Ok(())
}

fn params(dns: &[&str], common_name: &str) -> Result<CertificateParams> {
    let dns: Vec<String> = dns.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(dns)?;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    Ok(params)
}
