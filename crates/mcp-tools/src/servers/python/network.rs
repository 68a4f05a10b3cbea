//! The network of a sandbox: none, or the proxy of the egress policy and nothing else.
//!
//! A sandbox has a network of its own without any device but its loopback. On that one socket listens, and whoever
//! connects to it talks to the proxy in this process, which applies the policy. There is no other way out: there is
//! no route, and the list of system calls allows TCP sockets only.

use std::io;
use std::os::fd::OwnedFd;

use super::PythonOptions;
use crate::egress::{Egress, proxy};
use crate::sandbox::{Sandbox, SandboxMode};

/// This process's end of the channel through which a sandbox offers its listener.
pub(super) struct Door {
    channel: OwnedFd,
    egress: Egress,
}

/// A proxy that ends with its sandbox.
#[derive(Debug)]
pub(super) struct Proxy(tokio::task::AbortHandle);

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether sandboxes have a network, in words.
pub(super) fn report(options: &PythonOptions, sandbox: &Sandbox) -> String {
    if options.sandbox == SandboxMode::None {
        return "network: that of this machine, as confinement is switched off by `sandbox: none`".to_owned();
    }
    match &options.network {
        None => "network: none".to_owned(),
        Some(egress) => match not_to_be_had(egress, sandbox) {
            None => "network: HTTP and HTTPS through a proxy that applies the egress policy".to_owned(),
            Some(why) => format!("network: not through the proxy as asked for: {why}"),
        },
    }
}

fn not_to_be_had(egress: &Egress, sandbox: &Sandbox) -> Option<String> {
    let proxied =
        || "this machine is behind a proxy itself, which the sandbox's proxy does not go through".to_owned();
    sandbox.no_proxy().or_else(|| egress.is_behind_proxy().then(proxied))
}

/// A channel, where sandboxes have a network: the first end stays here, the second goes to the child.
pub(super) fn door(options: &PythonOptions, sandbox: &Sandbox) -> io::Result<Option<(Door, OwnedFd)>> {
    let Some(egress) = &options.network else { return Ok(None) };
    if not_to_be_had(egress, sandbox).is_some() {
        return Ok(None);
    }
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok(Some((Door { channel: ours, egress: egress.clone() }, theirs)))
}

impl Door {
    /// Takes the listener that the child has sent before it became its program, and serves the proxy on it.
    pub(super) fn open(self) -> io::Result<Proxy> {
        let listener = std::net::TcpListener::from(self.receive()?);
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(Proxy(tokio::spawn(proxy::serve(self.egress, listener)).abort_handle()))
    }

    fn receive(&self) -> io::Result<OwnedFd> {
        use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0u8; 1];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        recvmsg(&self.channel, &mut [io::IoSliceMut::new(&mut byte)], &mut control, flags)?;
        let sent = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        sent.ok_or_else(|| io::Error::other("the sandbox offered no listener"))
    }
}
