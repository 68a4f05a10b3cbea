//! Which addresses are on the public internet.
//!
//! Decides what kind an address is and which private ones were allowed by hand. Names are resolved elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address, length of the prefix, what is there. IANA's special-purpose registry, multicast, and the addresses at
/// which clouds answer machines of their own.
#[rustfmt::skip]
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address of this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "an address behind a carrier's NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a metadata address"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay to IPv6"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "an address for measurements"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "an address for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// The same for IPv6; what matches none and is outside 2000::/3 is reserved.
#[rustfmt::skip]
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "an address of this network"),
    (Ipv6Addr::LOCALHOST, 128, "a loopback address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, "an IPv4 address in IPv6"),
    (NAT64, 96, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a reserved address"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "an address for documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "an IPv4 address in IPv6"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "an address for documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "a private address"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "a link-local address"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "a private address"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "a multicast address"),
];

const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);

/// What keeps an address that somebody wrote out from being a public one, with an article; none: it is public.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => V4.iter().find_map(|(network, length, kind)| {
            within(bits4(address), bits4(*network), 32 - length).then_some(*kind)
        }),
        IpAddr::V6(address) => V6
            .iter()
            .find_map(|(network, length, kind)| {
                within(address.to_bits(), network.to_bits(), 128 - length).then_some(*kind)
            })
            .or((!within(address.to_bits(), GLOBAL.to_bits(), 125)).then_some("a reserved address")),
    }
}

/// The same for an address that a name resolved to. In networks without IPv4 every name does so to an address of
/// their NAT64, which is as public as the one inside.
pub(super) fn resolved_not_public(address: IpAddr) -> Option<&'static str> {
    if let IpAddr::V6(outer) = address
        && within(outer.to_bits(), NAT64.to_bits(), 32)
    {
        let inner = Ipv4Addr::from_bits((outer.to_bits() & u128::from(u32::MAX)) as u32);
        return not_public(IpAddr::V4(inner));
    }
    not_public(address)
}

fn bits4(address: Ipv4Addr) -> u128 {
    u128::from(address.to_bits())
}

/// Whether two addresses differ in the lowest `free` bits only.
fn within(address: u128, network: u128, free: u32) -> bool {
    let differ = address ^ network;
    differ.checked_shr(free).unwrap_or(0) == 0
}

/// A host, an address or a network that may be private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowed {
    Name(String),
    Network(IpAddr, u32),
}

impl Allowed {
    /// Reads `host.example`, `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a host, an address or a network; write host.example, 10.0.0.7 or 10.0.0.0/8"
            )
        };
        let text = text.trim();
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let (address, length) = match bare.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
            None => (bare, None),
        };
        if let Ok(address) = address.parse::<IpAddr>() {
            let most = if address.is_ipv4() { 32 } else { 128 };
            let length = length.unwrap_or(most);
            return if length <= most { Ok(Self::Network(address, length)) } else { Err(wrong()) };
        }
        let is_name = !text.is_empty()
            && text
                .chars()
                .all(|character| character.is_alphanumeric() || matches!(character, '.' | '-' | '_'));
        if is_name { Ok(Self::Name(text.trim_end_matches('.').to_lowercase())) } else { Err(wrong()) }
    }

    pub(super) fn has_name(&self, host: &str) -> bool {
        matches!(self, Self::Name(name) if name == host)
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Network(IpAddr::V4(network), length), IpAddr::V4(address)) => {
                within(bits4(address), bits4(*network), 32 - length)
            }
            (Self::Network(IpAddr::V6(network), length), IpAddr::V6(address)) => {
                within(address.to_bits(), network.to_bits(), 128 - length)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_addresses() {
        let check = |address: &str, expected: Option<&str>| {
            let kind = not_public(address.parse().unwrap());
            match expected {
                None => assert_eq!(kind, None, "{address}"),
                Some(part) => assert!(kind.is_some_and(|kind| kind.contains(part)), "{address}: {kind:?}"),
            }
        };
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.0.1",
            "198.20.0.0",
            "223.255.255.255",
            "168.63.129.15",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
        ] {
            check(public, None);
        }
        for (address, part) in [
            ("0.0.0.0", "this network"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carrier"),
            ("100.127.255.255", "carrier"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("168.63.129.16", "metadata"),
            ("224.0.0.1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("::", "this network"),
            ("::1", "loopback"),
            ("::ffff:8.8.8.8", "IPv4 address in IPv6"),
            ("::8.8.8.8", "IPv4 address in IPv6"),
            ("64:ff9b::8.8.8.8", "IPv4 address in IPv6"),
            ("64:ff9b:1::1", "IPv4 address in IPv6"),
            ("2002:7f00:1::", "IPv4 address in IPv6"),
            ("2001::1", "IPv4 address in IPv6"),
            ("2001:db8::1", "documentation"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
            ("4000::1", "reserved"),
            ("100::1", "reserved"),
        ] {
            check(address, Some(part));
        }
    }

    #[test]
    fn a_translated_address_is_as_public_as_the_one_inside() {
        let check = |address: &str, public: bool| {
            assert_eq!(resolved_not_public(address.parse().unwrap()).is_none(), public, "{address}");
        };
        check("64:ff9b::8.8.8.8", true);
        check("64:ff9b::10.0.0.1", false);
        check("64:ff9b::169.254.169.254", false);
        check("::ffff:8.8.8.8", false);
    }

    #[test]
    fn allowances() {
        let check = |text: &str, address: &str, expected: bool| {
            let allowed = Allowed::parse(text).unwrap();
            assert_eq!(allowed.has_address(address.parse().unwrap()), expected, "{text} {address}");
        };
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("10.1.0.0/16", "10.1.9.9", true);
        check("10.1.0.0/16", "10.2.0.0", false);
        check("0.0.0.0/0", "10.2.0.0", true);
        check("[fd00::]", "fd00::", true);
        check("fd00::/8", "fd12::1", true);
        check("::/0", "10.0.0.1", false);
        assert!(Allowed::parse("Intranet.Example.").unwrap().has_name("intranet.example"));
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/x", "http://host", "host/8", "a b"] {
            assert!(Allowed::parse(wrong).is_err(), "{wrong}");
        }
    }
}
