//! Puts the web manager's files, which `make web` builds, into the program: each as it is, and compressed if that is smaller.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Media types of files by the ends of their names.
const MEDIA_TYPES: [(&str, &str); 11] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
];

fn main() {
    if let Err(said) = embed() {
        println!("cargo::error={said}");
    }
}

fn embed() -> Result<(), String> {
    let folder = |name| env::var_os(name).map(PathBuf::from);
    let folder = |name| folder(name).ok_or_else(|| format!("{name} is not set"));
    let (own, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
    let dist = own.join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    if !dist.join("index.html").is_file() {
        return Err(
            "web/dist/index.html is missing: build the web manager with `make web`.".into(),
        );
    }
    let mut files = Vec::new();
    walk(&dist, &mut files).map_err(|error| format!("{}: {error}", dist.display()))?;
    files.sort();
    let mut code = String::from("/// The files of web/dist.\nstatic PAGES: &[Page] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let page = page(&dist, file, &out, number);
        let page = page.map_err(|error| format!("{}: {error}", file.display()))?;
        code += &page;
    }
    code += "];\n";
    let written = fs::write(out.join("pages.rs"), code);
    written.map_err(|error| format!("{}: {error}", out.display()))
}

/// Finds all files below a folder.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => walk(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Writes a file's content for the compiler to read, and returns the code of its entry.
fn page(dist: &Path, file: &Path, out: &Path, number: usize) -> io::Result<String> {
    let below = file.strip_prefix(dist).map_err(io::Error::other)?;
    let name = below
        .to_str()
        .ok_or_else(|| io::Error::other("its name is not UTF-8"))?;
    let path = match name {
        "index.html" => "/".to_owned(),
        _ => format!("/{name}"),
    };
    let end = file.extension().and_then(|end| end.to_str());
    let media_type = MEDIA_TYPES.iter().find(|(known, _)| Some(*known) == end);
    let unknown =
        || io::Error::other("its media type is not known: add it to bin/sluice-web/build.rs");
    let (_, media_type) = media_type.ok_or_else(unknown)?;
    let content = fs::read(file)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&content)?;
    let gzip = gzip.finish()?;
    let plain = entry(out, &number.to_string(), &content)?;
    let gzip = match gzip.len() < content.len() {
        true => format!("Some({})", entry(out, &format!("{number}.gz"), &gzip)?),
        false => "None".into(),
    };
    Ok(format!(
        "    Page {{ path: {path:?}, media_type: {media_type:?}, content: {plain}, gzip: {gzip} }},\n"
    ))
}

/// Code of a content, with its entity tag.
fn entry(out: &Path, name: &str, content: &[u8]) -> io::Result<String> {
    fs::write(out.join(name), content)?;
    let mut tag = String::new();
    for octet in &Sha256::digest(content)[..16] {
        // writing to a text does not fail
        let _ = write!(tag, "{octet:02x}");
    }
    Ok(format!(
        "Content {{ tag: \"\\\"{tag}\\\"\", octets: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")) }}"
    ))
}
