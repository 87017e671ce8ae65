//! Commands that say who is let in. They change files of the state folder, which a running server reads again.

use crate::audience::Audience;
use crate::links;
use crate::lists::ListFile;
use crate::role::Role;
use crate::scope::{self, Scope};
use crate::tokens::Token;
use crate::users::{LONGEST, User, set_password};
use clap::Subcommand;
use clap::builder::RangedU64ValueParser;
use config::start::Web;
use northbound::time;

/// Time after which a token expires if nothing else is said.
const EXPIRES: &str = "90d";
/// Maximum time in which a link can be used, in minutes.
const MOST_MINUTES: u64 = 24 * 60;

/// A command.
#[derive(Subcommand)]
pub enum Command {
    /// Manage the tokens by which programs are known
    #[command(subcommand)]
    Token(TokenCommand),
    /// Manage the users who sign in with a password
    #[command(subcommand)]
    User(UserCommand),
    /// Print a link that signs a browser in once, without a password
    Link {
        /// What the sign-in may do
        #[arg(long, value_enum)]
        role: Role,
        /// Who uses it, for the log
        #[arg(long, default_value = "link")]
        name: String,
        /// Minutes in which it can be used, 1 to 1440
        #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<u64>::new().range(1..=MOST_MINUTES))]
        minutes: u64,
        /// By which address and port the browser calls this server [default: the first of `hosts`, with the port of the first `listen`]
        #[arg(long, value_name = "ADDRESS:PORT")]
        at: Option<String>,
    },
}

/// A command about tokens.
#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it. It is not shown again
    Add {
        /// Who uses it
        name: String,
        /// What it may do
        #[arg(long, value_enum)]
        role: Role,
        /// What it may be used for; several are separated by commas [default: everything that the role allows]
        #[arg(
            long = "scope",
            value_enum,
            value_delimiter = ',',
            value_name = "SCOPE"
        )]
        scopes: Vec<Scope>,
        /// When it expires: a time from now such as 90d, 12h or 2w, or `never`
        #[arg(long, default_value = EXPIRES, value_name = "TIME")]
        expires: String,
    },
    /// List the tokens: name, role, when each expires, what it may be used for
    List,
    /// Remove a token. Requests with it are refused at once
    Revoke {
        /// Its name
        name: String,
    },
}

/// A command about users. Passwords are asked for on a terminal, and elsewhere are the first line of the input.
#[derive(Subcommand)]
pub enum UserCommand {
    /// Add a user, and ask for the password: 12 to 256 characters
    Add {
        /// By which name the user signs in
        name: String,
        /// What the user may do
        #[arg(long, value_enum)]
        role: Role,
    },
    /// List the users: name, role, when each was added
    List,
    /// Ask for another password of a user, whose sign-ins end at once
    Password {
        /// The user's name
        name: String,
    },
    /// Give a user another role. The user's sign-ins end at once
    Role {
        /// The user's name
        name: String,
        /// What the user may do
        #[arg(long, value_enum)]
        role: Role,
    },
    /// Remove a user, whose sign-ins end at once
    Remove {
        /// The user's name
        name: String,
    },
}

impl Command {
    /// Carries it out.
    ///
    /// # Errors
    /// What is wrong with an argument or a password, or that a file cannot be changed.
    pub fn run(self, start: &Web) -> Result<(), String> {
        let now = time::now();
        match self {
            Command::Token(command) => command.run(&ListFile::of(&start.state), now),
            Command::User(command) => command.run(&ListFile::of(&start.state), now),
            Command::Link {
                role,
                name,
                minutes,
                at,
            } => {
                let at = place(start, at)?;
                let file = ListFile::of(&start.state);
                let secret = links::add(&file, &name, role, now, now + 60 * minutes)?;
                println!("{}", links::url(&at, &secret));
                Ok(())
            }
        }
    }
}

/// By which host and port a browser calls the server.
fn place(start: &Web, named: Option<String>) -> Result<String, String> {
    if let Some(at) = named {
        return match Audience::new(&start.hosts).has(&at) {
            true => Ok(at),
            false => Err(format!(
                "`{at}` is not by which the server is called: expected one of `hosts` in its start file ({}), and a port",
                start.hosts.join(", ")
            )),
        };
    }
    let (host, listen) = (start.hosts.first(), start.listen.first());
    match (host, listen.map(|at| at.port())) {
        (Some(host), Some(port)) if port != 0 => Ok(format!("{host}:{port}")),
        _ => Err("the system chooses the port where the server listens: say which, with `--at ADDRESS:PORT`".into()),
    }
}

impl TokenCommand {
    fn run(self, file: &ListFile<Token>, now: u64) -> Result<(), String> {
        match self {
            TokenCommand::Add {
                name,
                role,
                scopes,
                expires,
            } => {
                Scope::check(&scopes, role)?;
                let expires = match &*expires {
                    "never" => None,
                    span => Some(
                        now + time::span(span).ok_or_else(|| {
                            format!(
                                "`{span}` is no time: expected such as 90d, 12h or 2w, or `never`"
                            )
                        })?,
                    ),
                };
                let (token, secret) = Token::generate(&name, role, scopes, now, expires);
                file.add(token)?;
                println!("{secret}");
            }
            TokenCommand::List => {
                for token in file.read()? {
                    let until = match token.expires {
                        None => "never expires".into(),
                        Some(at) if at <= now => format!("expired {}", time::moment(at)),
                        Some(at) => format!("expires {}", time::moment(at)),
                    };
                    let used_for = match &*token.scopes {
                        [] => "everything".into(),
                        scopes => scope::words(scopes),
                    };
                    let (name, role) = (&token.name, token.role.word());
                    println!("{name:<24}  {role:<9}  {until:<28}  {used_for}");
                }
            }
            TokenCommand::Revoke { name } => file.remove(&name)?,
        }
        Ok(())
    }
}

impl UserCommand {
    fn run(self, file: &ListFile<User>, now: u64) -> Result<(), String> {
        match self {
            UserCommand::Add { name, role } => {
                file.add(User::new(&name, role, &ask()?, now)?)?;
            }
            UserCommand::List => {
                for user in file.read()? {
                    let since = time::moment(user.created);
                    println!("{:<24}  {:<9}  added {since}", user.name, user.role.word());
                }
            }
            UserCommand::Password { name } => set_password(file, &name, &ask()?)?,
            UserCommand::Role { name, role } => {
                file.change_one(&name, |user| user.role = role)?;
            }
            UserCommand::Remove { name } => file.remove(&name)?,
        }
        Ok(())
    }
}

/// Asks for a new password.
fn ask() -> Result<String, String> {
    let password = config::prompt::password(true, LONGEST);
    password.map_err(|error| format!("no password: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_for_a_host_and_port_of_the_server() {
        let mut start = Web::default();
        let at = |start: &Web, named: &str| {
            place(start, Some(named.to_owned()).filter(|n| !n.is_empty()))
        };
        assert_eq!(at(&start, ""), Ok("localhost:8443".into()));
        assert_eq!(at(&start, "[::1]:9000"), Ok("[::1]:9000".into()));
        assert!(
            at(&start, "evil.example:8443")
                .unwrap_err()
                .contains("`hosts`")
        );
        start.listen[0].set_port(0);
        assert!(at(&start, "").unwrap_err().contains("--at"));
        start.hosts.insert(0, "gateway.example.net".into());
        start.listen[0].set_port(443);
        assert_eq!(at(&start, ""), Ok("gateway.example.net:443".into()));
    }
}
