//! Reads dictionaries in FreeRADIUS' format.
//!
//! A line is a directive: ATTRIBUTE, VALUE, VENDOR, BEGIN-VENDOR, END-VENDOR, BEGIN-TLV, END-TLV, $INCLUDE or $INCLUDE-. What follows
//! `#` is a comment. VALUE is checked and not kept, because no setting is read from a value's name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AttributeId, DataType, Definition, Dictionary, DictionaryError, Format};

/// Maximum number of files.
const MAX_FILES: usize = 1024;
/// Maximum depth of includes.
const MAX_DEPTH: usize = 16;
/// Maximum size of all files together, in octets.
const MAX_OCTETS: usize = 16 << 20;
/// Maximum number of attributes.
const MAX_ATTRIBUTES: usize = 65_536;
/// Maximum length of a name, in octets.
const MAX_NAME: usize = 128;
/// Highest number of a vendor: 24 bits (RFC 2865 §5.26).
const MAX_VENDOR: u64 = 0x00ff_ffff;

/// Reads files into a dictionary of its own, beside one that it extends.
pub(super) struct Parser<'a, R> {
    base: &'a Dictionary,
    read: R,
    found: Dictionary,
    /// Files that are open: each includes the next one.
    open: Vec<PathBuf>,
    files: usize,
    octets: usize,
}

/// State of one file.
#[derive(Default)]
struct Scope {
    /// Name and number of BEGIN-VENDOR.
    vendor: Option<(String, u32)>,
    /// Names of BEGIN-TLV.
    tlvs: Vec<String>,
}

/// What is wrong with a line, or the error of an included file.
enum Fault {
    Here(String),
    Included(DictionaryError),
}

type Parsed = Result<(), Fault>;

fn expected(what: &str, found: &str) -> Fault {
    let shown: String = found.chars().take(64).collect();
    Fault::Here(format!("`{}`: expected {what}", shown.escape_debug()))
}

impl<'a, R: FnMut(&Path) -> io::Result<String>> Parser<'a, R> {
    pub fn new(base: &'a Dictionary, read: R) -> Self {
        Parser {
            base,
            read,
            found: Dictionary::default(),
            open: Vec::new(),
            files: 0,
            octets: 0,
        }
    }

    /// What was read.
    pub fn finish(self) -> Dictionary {
        self.found
    }

    /// Reads a file. `place` is the line that includes it; an error about the file as a whole is reported there.
    pub fn file(
        &mut self,
        file: &Path,
        place: Option<(&Path, usize)>,
    ) -> Result<(), DictionaryError> {
        let said = |message: String| match place {
            None => error(file, 0, message),
            Some((by, line)) => error(by, line, format!("{}: {message}", file.display())),
        };
        if self.open.iter().any(|open| open == file) {
            return Err(said(
                "this file includes itself: expected no cycle of $INCLUDE".into(),
            ));
        }
        if self.open.len() >= MAX_DEPTH || self.files >= MAX_FILES {
            return Err(said(format!(
                "expected at most {MAX_FILES} files, included at most {MAX_DEPTH} deep"
            )));
        }
        let text =
            (self.read)(file).map_err(|error| said(format!("the file cannot be read: {error}")))?;
        self.files += 1;
        self.octets = self.octets.saturating_add(text.len());
        if self.octets > MAX_OCTETS {
            return Err(said(format!(
                "expected at most {MAX_OCTETS} octets in all dictionaries together"
            )));
        }
        self.open.push(file.to_owned());
        let mut scope = Scope::default();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let parsed = self.line(&mut scope, file, line_number, line);
            parsed.map_err(|fault| match fault {
                Fault::Here(message) => error(file, line_number, message),
                Fault::Included(error) => error,
            })?;
        }
        self.open.pop();
        Ok(())
    }

    fn line(&mut self, scope: &mut Scope, file: &Path, number: usize, line: &str) -> Parsed {
        let code = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = code.split_whitespace().collect();
        let Some((&directive, arguments)) = words.split_first() else {
            return Ok(());
        };
        match (directive.to_ascii_uppercase().as_str(), arguments) {
            ("ATTRIBUTE", [name, number, data_type, options @ ..]) if options.len() < 2 => {
                let option = options.first().copied().unwrap_or_default();
                self.attribute(scope, name, number, data_type, option)
            }
            ("VALUE", [_, _, number]) => value(number),
            ("VENDOR", [name, number]) => self.vendor(name, number, ""),
            ("VENDOR", [name, number, format]) => self.vendor(name, number, format),
            // `format=` of an extended space (RFC 6929) may follow
            ("BEGIN-VENDOR", [name] | [name, _]) => self.begin_vendor(scope, name),
            ("END-VENDOR", [name]) => end_vendor(scope, name),
            ("BEGIN-TLV", [name]) => {
                scope.tlvs.push((*name).to_owned());
                Ok(())
            }
            ("END-TLV", [name]) => match scope.tlvs.pop() {
                Some(begun) if begun.eq_ignore_ascii_case(name) => Ok(()),
                _ => Err(expected("the name of the last BEGIN-TLV", name)),
            },
            ("$INCLUDE", [other]) => self.include(file, number, other, false),
            ("$INCLUDE-", [other]) => self.include(file, number, other, true),
            _ => Err(expected(
                "`ATTRIBUTE name number type [flags]`, `VALUE attribute name number`, `VENDOR name number [format=]`, \
                 `BEGIN-VENDOR name`, `END-VENDOR name`, `BEGIN-TLV name`, `END-TLV name` or `$INCLUDE file`",
                line.trim(),
            )),
        }
    }

    /// Includes a file. With `$INCLUDE-` the file may be missing.
    fn include(&mut self, by: &Path, line: usize, name: &str, may_miss: bool) -> Parsed {
        let file = by.parent().unwrap_or(Path::new("")).join(name);
        if may_miss
            && let Err(error) = (self.read)(&file)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Ok(());
        }
        self.file(&file, Some((by, line))).map_err(Fault::Included)
    }

    fn vendor(&mut self, name: &str, written: &str, format: &str) -> Parsed {
        let name = lower(name)?;
        let number = number(written).filter(|number| (1..=MAX_VENDOR).contains(number));
        let number = number.ok_or_else(|| expected("a vendor's number, 1 to 16777215", written))?;
        let number = number as u32;
        let format = match format {
            "" => Format::default(),
            text => parse_format(text).ok_or_else(|| {
                expected(
                    "`format=number,length[,c]` with 1, 2 or 4 octets of number and 0 to 2 octets of length",
                    text,
                )
            })?,
        };
        if let Some(&other) = self.found.vendor_names.get(&name)
            && other != number
        {
            return Err(expected(
                &format!("vendor {other}, which the name has already"),
                written,
            ));
        }
        self.found.vendor_names.insert(name, number);
        self.found.formats.insert(number, format);
        Ok(())
    }

    fn vendor_number(&self, name: &str) -> Option<u32> {
        let name = name.to_ascii_lowercase();
        let known = self.found.vendor_names.get(&name);
        known.or_else(|| self.base.vendor_names.get(&name)).copied()
    }

    fn begin_vendor(&self, scope: &mut Scope, name: &str) -> Parsed {
        if let Some((other, _)) = &scope.vendor {
            return Err(expected(&format!("END-VENDOR {other} first"), name));
        }
        let number = self.vendor_number(name);
        let number = number.ok_or_else(|| expected("a name of a VENDOR line", name))?;
        scope.vendor = Some((name.to_owned(), number));
        Ok(())
    }

    fn attribute(
        &mut self,
        scope: &Scope,
        name: &str,
        number: &str,
        data_type: &str,
        option: &str,
    ) -> Parsed {
        let key = lower(name)?;
        let mut vendor = scope.vendor.as_ref().map_or(0, |(_, number)| *number);
        let mut flags = Flags::default();
        // dictionaries before BEGIN-VENDOR name the vendor here
        match self.vendor_number(option) {
            Some(number) => vendor = number,
            None => flags = Flags::parse(option)?,
        }
        let data_type = parse_type(data_type)?;
        let id = match scope.tlvs.is_empty() {
            true => self.id(vendor, number)?,
            false => None,
        };
        let definition = Arc::new(Definition {
            name: name.to_owned(),
            id: id.filter(|_| !flags.internal),
            data_type,
            tagged: flags.tagged,
            encrypted: flags.encrypted,
        });
        if let Some(other) = self.found.by_name.get(&key)
            && other.id != definition.id
        {
            return Err(expected(
                "another name: this one has another number already",
                name,
            ));
        }
        if self.found.by_name.len() >= MAX_ATTRIBUTES {
            return Err(Fault::Here(format!(
                "expected at most {MAX_ATTRIBUTES} attributes in all dictionaries together"
            )));
        }
        if let Some(id) = definition.id {
            self.found.by_id.insert(id, definition.clone());
        }
        self.found.by_name.insert(key, definition);
        Ok(())
    }

    /// Number of an attribute; `None` if it cannot be in a packet on its own.
    fn id(&self, vendor: u32, written: &str) -> Result<Option<AttributeId>, Fault> {
        let wrong = || expected("an attribute's number, such as 26 or 0x1a", written);
        if written.contains('.') {
            let numbers = written.split('.').all(|part| number(part).is_some());
            return numbers.then_some(None).ok_or_else(wrong);
        }
        let number = number(written).and_then(|number| u32::try_from(number).ok());
        let number = number.ok_or_else(wrong)?;
        let formats = [&self.found.formats, &self.base.formats];
        let format = formats.iter().find_map(|formats| formats.get(&vendor));
        let fits = match format.copied().unwrap_or_default().number {
            1 => number <= 0xff,
            2 => number <= 0xffff,
            _ => true,
        };
        Ok(fits.then_some(AttributeId { vendor, number }))
    }
}

fn end_vendor(scope: &mut Scope, name: &str) -> Parsed {
    match scope.vendor.take() {
        Some((begun, _)) if begun.eq_ignore_ascii_case(name) => Ok(()),
        Some((begun, _)) => Err(expected(&format!("END-VENDOR {begun}"), name)),
        None => Err(expected("BEGIN-VENDOR first", name)),
    }
}

fn error(file: &Path, line: usize, message: String) -> DictionaryError {
    DictionaryError {
        file: file.to_owned(),
        line,
        message,
    }
}

/// A name as it is looked up.
fn lower(name: &str) -> Result<String, Fault> {
    match name.len() {
        1..=MAX_NAME => Ok(name.to_ascii_lowercase()),
        _ => Err(expected(
            &format!("a name of at most {MAX_NAME} octets"),
            name,
        )),
    }
}

/// Number in decimal, or in hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    let hexadecimal = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let plain = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

fn value(written: &str) -> Parsed {
    let number = number(written.strip_prefix('-').unwrap_or(written));
    number.map_or(Err(expected("a number", written)), |_| Ok(()))
}

fn parse_format(text: &str) -> Option<Format> {
    let mut parts = text.strip_prefix("format=")?.split(',');
    let mut octets = || parts.next()?.parse().ok();
    let (number, length) = (octets()?, octets()?);
    let continuation = match (parts.next(), parts.next()) {
        (None, _) => false,
        (Some("c"), None) => true,
        _ => return None,
    };
    let fits = [1, 2, 4].contains(&number) && length <= 2;
    fits.then_some(Format {
        number,
        length,
        continuation,
    })
}

fn parse_type(text: &str) -> Result<DataType, Fault> {
    let lower = text.to_ascii_lowercase();
    let name = lower.split('[').next().unwrap_or_default();
    Ok(match name {
        "string" | "text" => DataType::Text,
        "integer64" | "uint64" => DataType::Number(8),
        "integer" | "uint32" => DataType::Number(4),
        "short" | "uint16" => DataType::Number(2),
        "byte" | "uint8" => DataType::Number(1),
        "ipaddr" | "ipv4addr" => DataType::Ipv4,
        "ipv6addr" => DataType::Ipv6,
        "combo-ip" => DataType::Ip,
        "ipv4prefix" => DataType::Ipv4Prefix,
        "ipv6prefix" => DataType::Ipv6Prefix,
        "octets" | "date" | "ifid" | "ether" | "abinary" | "signed" | "bool" | "tlv" | "struct"
        | "extended" | "long-extended" | "evs" | "vsa" | "combo-prefix" | "int8" | "int16"
        | "int32" | "int64" | "float32" | "float64" | "time_delta" => DataType::Octets,
        _ => {
            return Err(expected(
                "a type, such as string, octets, integer, ipaddr, ipv6addr, ipv6prefix or date",
                text,
            ));
        }
    })
}

/// Flags of an attribute that matter here.
#[derive(Default)]
struct Flags {
    tagged: bool,
    encrypted: bool,
    internal: bool,
}

impl Flags {
    fn parse(text: &str) -> Result<Flags, Fault> {
        let mut flags = Flags::default();
        for flag in text.split(',').filter(|flag| !flag.is_empty()) {
            match flag {
                "has_tag" => flags.tagged = true,
                "virtual" | "internal" => flags.internal = true,
                "concat" | "array" | "secret" | "long" => {}
                _ if flag.starts_with("encrypt=") => flags.encrypted = true,
                _ => {
                    return Err(expected(
                        "a flag (has_tag, encrypt=, concat, array, secret, virtual) or a vendor's name",
                        flag,
                    ));
                }
            }
        }
        Ok(flags)
    }
}
