//! A listener inside the child's own network, offered to the parent.
//!
//! Decides how a process that can reach nothing is reached all the same: the loopback of its network is brought up,
//! a socket listens there, and the parent gets that socket. Whoever connects inside talks to the parent, and to
//! nobody else. Raw system calls only.

use std::io;
use std::os::fd::RawFd;

use libc::{c_int, c_long};

use super::{address, call};

/// `SIOCSIFFLAGS`.
const SET_FLAGS: c_long = 0x8914;
/// Connections that may wait.
const BACKLOG: c_long = 64;

/// `struct ifreq` with flags.
#[repr(C)]
struct Interface {
    name: [u8; 16],
    flags: i16,
    unused: [u8; 22],
}

/// `struct sockaddr_in`.
#[repr(C)]
struct SocketAddress {
    family: u16,
    port: [u8; 2],
    address: [u8; 4],
    unused: [u8; 8],
}

/// `struct iovec`.
#[repr(C)]
struct Piece {
    start: *const u8,
    length: usize,
}

/// `struct cmsghdr` with one descriptor.
#[repr(C)]
struct Rights {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
}

/// `struct msghdr` as the kernel knows it.
#[repr(C)]
struct Envelope {
    name: *const u8,
    name_length: c_int,
    pieces: *const Piece,
    piece_count: usize,
    control: *const Rights,
    control_length: usize,
    flags: c_int,
}

/// Listens on this port of the loopback and sends the listener through `channel`. For a process that has a network
/// of its own and may set it up.
pub(super) fn offer(channel: RawFd, port: u16) -> io::Result<()> {
    let kind = c_long::from(libc::SOCK_STREAM | libc::SOCK_CLOEXEC);
    let socket = call(libc::SYS_socket, [libc::AF_INET.into(), kind, 0, 0, 0])?;
    let mut loopback = Interface { name: [0; 16], flags: 0, unused: [0; 22] };
    (loopback.name[0], loopback.name[1]) = (b'l', b'o');
    loopback.flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    call(libc::SYS_ioctl, [socket, SET_FLAGS, address(&raw const loopback), 0, 0])?;
    let here = SocketAddress {
        family: libc::AF_INET as u16,
        port: port.to_be_bytes(),
        address: [127, 0, 0, 1],
        unused: [0; 8],
    };
    let length = c_long::try_from(size_of::<SocketAddress>()).unwrap_or(0);
    call(libc::SYS_bind, [socket, address(&raw const here), length, 0, 0])?;
    call(libc::SYS_listen, [socket, BACKLOG, 0, 0, 0])?;
    send(channel, c_int::try_from(socket).unwrap_or(-1))?;
    call(libc::SYS_close, [socket, 0, 0, 0, 0]).map(drop)
}

fn send(channel: RawFd, descriptor: c_int) -> io::Result<()> {
    // A message needs a byte to come with.
    let byte = [0u8];
    let piece = Piece { start: byte.as_ptr(), length: byte.len() };
    let rights = Rights {
        length: std::mem::offset_of!(Rights, descriptor) + size_of::<c_int>(),
        level: libc::SOL_SOCKET,
        kind: libc::SCM_RIGHTS,
        descriptor,
    };
    let envelope = Envelope {
        name: std::ptr::null(),
        name_length: 0,
        pieces: &raw const piece,
        piece_count: 1,
        control: &raw const rights,
        control_length: size_of::<Rights>(),
        flags: 0,
    };
    // What the pointers lead to lives until the call is over; their addresses are known to the kernel by these.
    let _ = (address(envelope.pieces), address(envelope.control), address(piece.start));
    call(libc::SYS_sendmsg, [channel.into(), address(&raw const envelope), 0, 0, 0]).map(drop)
}
