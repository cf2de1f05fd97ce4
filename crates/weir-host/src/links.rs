//! Interfaces of one namespace, read and changed by rtnetlink(7).

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use rustix::io::Errno;

use crate::netlink::{Netlink, Refusal};
use crate::{HostError, Network, Wire};

/// Interval at which a link is checked until it is up.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// An interface as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Number of the interface within the namespace.
    pub index: u32,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// True if frames can cross the interface: it is up and has a carrier. The loopback, which has no carrier, counts
    /// once it is up.
    pub up: bool,
    /// Hardware address of the interface.
    pub hardware: Vec<u8>,
}

impl Interface {
    fn of(message: &LinkMessage) -> Interface {
        let mut interface = Interface {
            name: String::new(),
            index: message.header.index,
            mtu: 0,
            up: false,
            hardware: Vec::new(),
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name.clone_from(name),
                LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
                LinkAttribute::Address(bytes) => interface.hardware.clone_from(bytes),
                LinkAttribute::OperState(state) => {
                    interface.up = matches!(state, State::Up | State::Unknown)
                        && message.header.flags.contains(LinkFlags::Up);
                }
                _ => {}
            }
        }
        interface
    }
}

/// Netlink connection to the links of one namespace.
#[derive(Debug)]
pub(crate) struct Links(Netlink<RouteNetlinkMessage>);

impl Links {
    /// Opens the links of the calling thread's namespace.
    pub(crate) fn open() -> Result<Links, HostError> {
        Netlink::open(NETLINK_ROUTE)
            .map(Links)
            .map_err(|e| HostError::refused("talk to the kernel over netlink", e))
    }

    /// Lists all interfaces.
    pub(crate) fn all(&mut self) -> Result<Vec<Interface>, HostError> {
        let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.0.list(&question);
        Ok(interfaces(
            &answers.map_err(|refusal| explained(refusal, "list network interfaces".to_owned()))?,
        ))
    }

    /// Returns true if the namespace has an interface with this end's name.
    pub(crate) fn holds(&mut self, wire: &Wire) -> Result<bool, HostError> {
        let mut all = self.all()?.into_iter();
        Ok(all.any(|interface| interface.name == wire.name))
    }

    /// Returns the interface that has an address; `None` if no interface of this namespace has it.
    pub(crate) fn with_address(&mut self, address: IpAddr) -> Result<Option<Interface>, HostError> {
        let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self
            .0
            .list(&question)
            .map_err(|refusal| explained(refusal, "list addresses".to_owned()))?;
        let index = answers.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(message) if has_address(message, address) => {
                Some(message.header.index)
            }
            _ => None,
        });
        let mut all = self.all()?.into_iter();
        Ok(all.find(|interface| Some(interface.index) == index))
    }

    fn find(&mut self, name: &str) -> Result<Interface, HostError> {
        let question = RouteNetlinkMessage::GetLink(link_message(name));
        let interface = match self.0.ask(question, 0) {
            Ok(answers) => interfaces(&answers).pop(),
            Err(refusal) => return Err(explained(refusal, format!("look at `{name}`"))),
        };
        interface.ok_or_else(|| HostError::refused(format!("look at `{name}`"), Errno::NODEV))
    }

    pub(crate) fn set_up(&mut self, name: &str) -> Result<(), HostError> {
        let mut change = link_message(name);
        change.header.flags = LinkFlags::Up;
        change.header.change_mask = LinkFlags::Up;
        self.0
            .ask(RouteNetlinkMessage::SetLink(change), 0)
            .map(drop)
            .map_err(|refusal| explained(refusal, format!("bring `{name}` up")))
    }

    /// Waits until frames can cross an interface; returns its state at that moment.
    pub(crate) fn await_up(&mut self, name: &str, until: Instant) -> Result<Interface, HostError> {
        loop {
            let interface = self.find(name)?;
            if interface.up {
                return Ok(interface);
            }
            if Instant::now() >= until {
                return Err(HostError::StillDown(name.to_owned()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Creates a pair with one end here and the other in another namespace from its first moment.
    pub(crate) fn make_pair(
        &mut self,
        near: &Wire,
        far: (&Network, &Wire),
        mtu: u32,
    ) -> Result<(), Refusal> {
        let mut peer = link_message(&far.1.name);
        peer.attributes.push(LinkAttribute::Mtu(mtu));
        let far_network = far.0.as_fd().as_raw_fd();
        peer.attributes.push(LinkAttribute::NetNsFd(far_network));

        let mut pair = link_message(&near.name);
        pair.attributes.push(LinkAttribute::Mtu(mtu));
        pair.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let message = RouteNetlinkMessage::NewLink(pair);
        self.0.ask(message, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Removes an interface, and with it the other end of its pair.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        let message = RouteNetlinkMessage::DelLink(link_message(name));
        self.0.ask(message, 0).map(drop)
    }

    /// Gives an end its addresses.
    pub(crate) fn add_addresses(&mut self, wire: &Wire) -> Result<(), HostError> {
        let index = self.find(&wire.name)?.index;
        for &(address, prefix) in &wire.addresses {
            let wanted = RouteNetlinkMessage::NewAddress(with_address(index, address, prefix));
            self.0
                .ask(wanted, NLM_F_CREATE | NLM_F_EXCL)
                .map_err(|refusal| address_refused(refusal, &wire.name, address, prefix))?;
        }
        Ok(())
    }

    /// Adds permanent neighbour entries for the other end's addresses to this end.
    pub(crate) fn add_neighbours(
        &mut self,
        near: &Interface,
        wire: &Wire,
        far: &Interface,
    ) -> Result<(), HostError> {
        for &(address, _) in &wire.addresses {
            let entry = neighbour(near.index, address, &far.hardware);
            let request = RouteNetlinkMessage::NewNeighbour(entry);
            self.0.ask(request, NLM_F_CREATE | NLM_F_REPLACE).map_err(|refusal| {
                explained(refusal, format!("tell `{}` who {address} is", near.name))
            })?;
        }
        Ok(())
    }
}

fn link_message(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
    message
}

fn with_address(index: u32, address: Ipv4Addr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    // Both, as ip-address(8) does: the one is the peer's on a point-to-point link, the other is its
    // own (linux/if_addr.h).
    for attribute in [AddressAttribute::Local, AddressAttribute::Address] {
        message.attributes.push(attribute(IpAddr::V4(address)));
    }
    message
}

fn neighbour(index: u32, address: Ipv4Addr, hardware: &[u8]) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
        NeighbourAttribute::LinkLayerAddress(hardware.to_vec()),
    ];
    message
}

fn interfaces(answers: &[RouteNetlinkMessage]) -> Vec<Interface> {
    answers
        .iter()
        .filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(Interface::of(link)),
            _ => None,
        })
        .collect()
}

fn has_address(message: &AddressMessage, address: IpAddr) -> bool {
    // On a link of two the other one is the peer's.
    message.attributes.iter().any(|attribute| match attribute {
        AddressAttribute::Local(local) => *local == address,
        AddressAttribute::Address(peer) => address.is_ipv6() && *peer == address,
        _ => false,
    })
}

fn address_refused(refusal: Refusal, name: &str, address: Ipv4Addr, prefix: u8) -> HostError {
    if refusal.is(Errno::EXIST) {
        HostError::AddressTaken { name: name.to_owned(), address }
    } else {
        explained(refusal, format!("give `{name}` {address}/{prefix}"))
    }
}

/// Converts a refusal into an error in the kernel's words, with the capability that is missing if it is known.
pub(crate) fn explained(refusal: Refusal, doing: String) -> HostError {
    if refusal.is(Errno::PERM) {
        return HostError::NotPermitted { doing, capability: "CAP_NET_ADMIN" };
    }
    let source = refusal.source;
    let Some(words) = refusal.words else {
        return HostError::Refused { doing, source };
    };
    HostError::Explained { doing, words, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::may_have_networks;

    fn wire(name: &str) -> Wire {
        Wire { name: name.to_owned(), addresses: vec![(Ipv4Addr::new(10, 0, 0, 1), 24)] }
    }

    /// Opens the links of a new namespace; None, with a message, if none can be made.
    fn links_or_skip() -> Option<(Network, Links)> {
        if let Err(e) = may_have_networks() {
            println!("left out: {e}");
            return None;
        }
        let network = Network::create().unwrap();
        let links = network.within(Links::open).unwrap().unwrap();
        Some((network, links))
    }

    #[test]
    fn the_kernel_says_why() {
        let Some((network, mut links)) = links_or_skip() else {
            return;
        };
        let mut a = wire("left");
        a.addresses[0].1 = 33;
        let b = wire("right");
        links.make_pair(&a, (&network, &b), 1500).unwrap();
        let error = links.add_addresses(&a).unwrap_err();
        let HostError::Explained { words, .. } = &error else {
            panic!("{error}");
        };
        assert!(words.contains("prefix"), "{words}");
        let expected =
            format!("cannot give `left` 10.0.0.1/33: {words} (Invalid argument (os error 22))");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_pair_that_fails_half_way_can_be_removed() {
        let Some((network, mut links)) = links_or_skip() else {
            return;
        };
        let (left, right) = (wire("left"), wire("right"));
        links.make_pair(&left, (&network, &right), 1500).unwrap();
        links.add_addresses(&left).unwrap();
        let error = links.add_addresses(&left).unwrap_err();
        assert!(matches!(error, HostError::AddressTaken { .. }), "{error}");
        assert!(links.holds(&left).unwrap() && links.holds(&right).unwrap());
        links.remove("left").unwrap();
        assert!(!links.holds(&left).unwrap() && !links.holds(&right).unwrap());
    }

    #[test]
    fn an_end_alone_is_down() {
        let Some((network, mut links)) = links_or_skip() else {
            return;
        };
        let (left, right) = (wire("left"), wire("right"));
        links.make_pair(&left, (&network, &right), 1500).unwrap();
        links.set_up("left").unwrap();
        assert!(!links.find("left").unwrap().up, "it has no carrier");
        let error = links.await_up("left", Instant::now()).unwrap_err();
        assert!(matches!(error, HostError::StillDown { .. }), "{error}");
        links.set_up("right").unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        links.await_up("left", until).unwrap();
        links.await_up("right", until).unwrap();
        let error = links.find("nosuch").unwrap_err();
        assert!(error.to_string().contains("nosuch"), "{error}");
    }
}
