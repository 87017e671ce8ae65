use super::commits::commit;
use crate::fixture::Fixture;
use crate::site::{CONFIGURED_AS, Setup, Site, UP, daemon};
use anyhow::{Context, Result, ensure};
use lab::topology::{CORE_PORT, Lab, Place};
use nix::sys::signal::Signal;
use northbound::{Change, CommitRequest, CommitResponse, ConfigurationClient, change};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// No time is measured that way: it ends a wait for what does not come.
const LIMIT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(50);
/// An interface of the kernel's that has another owner than the user plane, and the address that it is to have.
const TAKEN: &str = "taken0";
const ADDRESS: &str = "203.0.113.129/30";
/// Another address of the core port.
const SECOND: &str = "198.51.100.9/24";

/// What the user plane cannot do is refused before anything changes, with its reason.
pub fn refused(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    for (device, why) in [
        (
            "net_af_xdp7,iface=nowhere0",
            "this machine has no network interface `nowhere0`",
        ),
        (
            "net_nothing7,iface=lo",
            "the user plane has no driver for `net_nothing7,iface=lo`",
        ),
    ] {
        let before = state(lab)?;
        let port = ["user-planes", CONFIGURED_AS, "ports", "core7"];
        let role = [&port[..], &["role", "core"]].concat();
        let device = [&port[..], &["device", device]].concat();
        // The control plane's part, which it could do, is not done either.
        let name = ["access-profiles", "pppoe", "ac-name", "another"];
        let mut client = client(lab)?;
        let base = client.get(None)?.version;
        let done = client.commit(commit(base, &[&role, &device, &name]))?;
        let [fault] = &done.faults[..] else {
            anyhow::bail!("expected one fault: {done:?}");
        };
        ensure!(
            fault.path == format!("user-planes {CONFIGURED_AS} ports core7 device")
                && fault.message.starts_with(why),
            "{fault:?}"
        );
        let after = state(lab)?;
        ensure!(after == before, "before:\n{before}\nafter:\n{after}");
    }
    site.sluice().ledger()?;
    Ok(())
}

/// What is in force and kept on either plane, and the user plane's interfaces.
fn state(lab: &Lab) -> Result<String> {
    let mut client = client(lab)?;
    let (current, managed) = (client.get(None)?, client.managed()?);
    let document = fs::read_to_string(lab.dir().join("up").join("document"))?;
    let links = interfaces(lab)?;
    Ok(format!("{current:?}\n{managed:?}\n{document}\n{links}"))
}

/// What a user plane did not take is offered again until it is in force: when it refused it, when it was away, and when it died
/// before it answered.
pub fn offered_again(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    offered(lab, site)?;
    // Its user plane has lost what a supervisor would have kept for it.
    fixture.without_site().map(drop)
}

fn offered(lab: &Lab, site: &mut Site) -> Result<()> {
    let first = client(lab)?.get(None)?.version;
    let up = lab.netns(Place::UserPlane(UP));
    up.ip(&format!("link add {TAKEN} type veth peer name taken1"))?;
    let done = refused_by_apply(lab);
    up.ip(&format!("link del {TAKEN}"))?;
    done?;
    wait_in_force(lab, ADDRESS, true)?;
    away(lab, site)?;
    wait_in_force(lab, SECOND, true)?;
    dies_before_it_answers(lab, site)?;
    wait_in_force(lab, SECOND, false)?;
    lab.default_routes(UP)?;
    let back = CommitRequest {
        change: Some(Change {
            change: Some(change::Change::Version(first)),
        }),
        ..CommitRequest::default()
    };
    let done = client(lab)?.commit(back)?;
    ensure!(
        done.faults.is_empty() && done.pending.is_empty(),
        "{done:?}"
    );
    Ok(())
}

/// What shows only when it is done: the version is in force, the user plane says why it does not follow, and nothing changes there.
fn refused_by_apply(lab: &Lab) -> Result<()> {
    let part = [
        "user-planes",
        CONFIGURED_AS,
        "ports",
        CORE_PORT,
        "subinterfaces",
        "v700",
    ];
    let edits = [["vlan-id", "700"], ["tap", TAKEN], ["addresses", ADDRESS]];
    let edits = edits.map(|edit| [&part[..], &edit].concat());
    let edits: Vec<&[&str]> = edits.iter().map(Vec::as_slice).collect();
    let (base, before) = (client(lab)?.get(None)?.version, interfaces(lab)?);
    let done = client(lab)?.commit(commit(base, &edits))?;
    pending(&done, TAKEN)?;
    let managed = client(lab)?.managed()?;
    ensure!(
        managed.len() == 1 && !managed[0].in_force && managed[0].why.contains(TAKEN),
        "{managed:?}"
    );
    let after = interfaces(lab)?;
    ensure!(after == before, "before:\n{before}\nafter:\n{after}");
    Ok(())
}

/// A version is committed while the user plane is not there.
fn away(lab: &Lab, site: &mut Site) -> Result<()> {
    site.up.signal(Signal::SIGKILL)?;
    site.up.stop()?;
    let base = client(lab)?.get(None)?.version;
    let done = client(lab)?.commit(commit(base, &[&second()]))?;
    pending(&done, "it cannot be reached")?;
    start_again(lab, site)
}

/// The user plane is offered a document, and dies without an answer.
fn dies_before_it_answers(lab: &Lab, site: &mut Site) -> Result<()> {
    let base = client(lab)?.get(None)?.version;
    let mut request = commit(base, &[&second()]);
    if let Some(change::Change::Edits(edits)) =
        request.change.as_mut().and_then(|c| c.change.as_mut())
    {
        edits.edits.iter_mut().for_each(|edit| edit.delete = true);
    }
    site.up.signal(Signal::SIGSTOP)?;
    let done = thread::scope(|scope| -> Result<CommitResponse> {
        let committing = scope.spawn(|| Ok::<_, anyhow::Error>(client(lab)?.commit(request)?));
        // It is offered when the version is written.
        let versions = lab.dir().join("store").join("configuration");
        let version = versions.join(format!("{:06}.yaml", base + 1));
        let begun = Instant::now();
        while !version.exists() && begun.elapsed() < LIMIT {
            thread::sleep(TICK);
        }
        site.up.signal(Signal::SIGKILL)?;
        committing
            .join()
            .map_err(|_| anyhow::anyhow!("the commit panicked"))?
    })?;
    pending(&done, "")?;
    site.up.stop()?;
    start_again(lab, site)
}

fn second() -> [&'static str; 6] {
    [
        "user-planes",
        CONFIGURED_AS,
        "ports",
        CORE_PORT,
        "addresses",
        SECOND,
    ]
}

/// The version is in force, and the user plane does not have it yet, because of this.
fn pending(done: &CommitResponse, why: &str) -> Result<()> {
    let [pending] = &done.pending[..] else {
        anyhow::bail!("the user plane has it: {done:?}");
    };
    ensure!(
        done.faults.is_empty() && pending.starts_with(CONFIGURED_AS) && pending.contains(why),
        "{done:?}"
    );
    Ok(())
}

fn start_again(lab: &Lab, site: &mut Site) -> Result<()> {
    let file = lab.dir().join("up.yaml");
    site.up = daemon(lab, Place::UserPlane(UP), "sluice-up", &file)?;
    Ok(())
}

/// Waits until the user plane has the version in force, and sees that its kernel has this address, or that it does not.
fn wait_in_force(lab: &Lab, address: &str, there: bool) -> Result<()> {
    let begun = Instant::now();
    loop {
        let managed = client(lab)?.managed()?;
        let plane = managed.first().context("no user plane")?;
        if plane.in_force {
            let found = interfaces(lab)?;
            ensure!(
                found.contains(address) == there,
                "in force, and of {address} that is not true:\n{found}"
            );
            return Ok(());
        }
        ensure!(begun.elapsed() < LIMIT, "not in force: {}", plane.why);
        thread::sleep(TICK);
    }
}

/// The interfaces of the user plane's kernel, and their addresses.
fn interfaces(lab: &Lab) -> Result<String> {
    let up = lab.netns(Place::UserPlane(UP));
    up.run(&["ip", "-brief", "address", "show"])
}

fn client(lab: &Lab) -> Result<ConfigurationClient> {
    let socket = lab.dir().join("cp.sock");
    Ok(ConfigurationClient::connect(&socket, LIMIT)?)
}
