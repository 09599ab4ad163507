// Package vppfake is a fake VPP 25.10: it implements the binary API over a unix socket, keeps state, returns the return codes of the real VPP,
// simulates the path of packets through that state, and fails on demand. Any govpp client connects to it unchanged.
//
//	f := vppfake.New(vppfake.Config{Seed: 1})
//	defer f.Close()
//	err := f.Listen(socket)              // connect govpp to socket, configure
//	r, err := f.Send("pod-1", packet)    // what would become of this packet?
//	f.Faults.Add(vppfake.Fault{Message: "ip_route_add_del_v2", Nth: 3, Retval: -7})
//	f.Crash()                            // state gone, connections dropped, started again
//	text := f.Dump()                     // the whole state, to compare
//
// # Comparison with the real VPP
//
// testdata/contract holds the replies of a real VPP 25.10 to lists of requests, field by field, and testdata/packets the output of its packet
// generator. TestContractFake and TestPacketsFake compare the fake with them on every machine; TestContractVPP and TestPacketsVPP compare the
// real VPP with them where it is available (root, vpp on PATH). A difference is a bug of the fake. After adding a scenario, or for another
// version of VPP, run:
//
//	go test ./dataplane/vpp/vppfake -run 'VPP$' -args -update
//
// So unexpected behaviour is that of VPP, for example: delete_loopback on a sub-interface deletes its parent; deleting an address with a wrong
// prefix length succeeds and leaves the connected route behind; a static neighbour stays when its interface is deleted and belongs to the next
// interface with that index; MAC table entries stay when ports and bridge domains are deleted; VLAN tag rewriting stays when an interface is
// deleted in layer 3; deleting one half of a cross-connect removes the other half, even from a bridge domain to which it has moved; routes keep
// the host bits of their first prefix; sw_interface_set_l2_bridge creates a missing bridge domain. The most serious case: a route whose
// interface is deleted before the route never works again, and neither does any route that is given the same paths while it exists, although
// the API returns 0 and the dump looks correct (deadpaths.go).
//
// # Adding a kind of objects
//
// Add one file with a register function that registers the messages (on, dump, event) and, if the objects are not part of an interface, a dump
// function for Fake.Dump; one line in objectKinds; and one scenario in the contract. If the objects affect packets, add one place in the walk_
// files. A request whose list is counted by a u32 needs counted (a test fails without it).
//
// # Rejected requests
//
// A message without a handler is not in the message table: govpp fails at once, as with a VPP that lacks the plugin. A message that arrives
// nevertheless without a handler, truncated, or under another client's index is ignored, as in VPP, and stored in Refused. A walk that reaches
// something that the fake does not model ends with ErrNotUnderstood.
//
// Requests that abort VPP (sr_policy_add and _v2 without SIDs, memif_create in punt-inject mode, a balanced NAT mapping of more than 255
// backends, disabling NAT under balanced mappings) crash the fake: the state and the connections of all clients are lost, see Crashes. So does
// a packet for a NAT mapping whose weights add up to a multiple of 256.
//
// # Limits
//
//   - API: the objects listed in objectKinds. There is no SRv6, IPsec, statistics segment, multicast, MPLS, BIER or classify table. MFIBs of a
//     table are not stored. ip_table_replace and address replace are not supported.
//   - Tables: fe80::/10 as VPP shows it, without the link-local tables behind it.
//   - Attributes of hardware that VPP reads from the driver (speed, duplex, host MTU) are 0 or fixed. A memif has no peer: its link stays down.
//     A host device or network namespace is assumed to exist unless Config.Host returns an error.
//   - Time: neighbours do not age, MAC table entries are not removed by a scan after a flush, ARP and ND are not sent. An unresolved next hop
//     is a drop ("no adjacency").
//   - Events are sent once per request; VPP may merge those of several requests.
//   - Stats indices are numbers without meaning. feature_enable_disable has the arcs, not the features of each.
//   - Packets: the choice among equal paths is deterministic but not VPP's. Of the ICMP errors only those of routes that reject are generated
//     (Result.Errors), without VPP's rate limit, and no echo replies. VPP's own ports do not reply. Packets longer than the MTU are marked as
//     fragmented or dropped, not fragmented. A packet on an interface that is down is dropped (VPP's packet generator sends it nevertheless).
//     IPv6 neighbour discovery is not answered; Config.Resolve returns the results of ND and ARP.
//   - Worker threads only have receive queues assigned, without effect on packets (Config.Workers). Fake.Dump omits receive modes and
//     placements.
//   - NAT: NAT44-ED, with VPP's own random choices of ports and backends when Config.Workers is at most 1. Sessions do not age and are not
//     reused when the limit is reached; fragments and protocols other than TCP, UDP and ICMP do not pass NAT; an ICMP error about an unknown
//     flow leaves no session behind; there is no handover between worker threads.
//   - Our own plugin (dataplane/vpp/plugin, Config.Plugin): by the rules of its README. Maglev's choice differs from the plugin's, rejections
//     have no rate limit, and fragments that wait for the first one wait without a timeout.
//   - DHCP: only the API. Fake.Lease acts as the server.
//   - VLAN tag rewriting and ARP termination are stored, but a walk that reaches them ends. Flow hashes are stored.
//   - create_subif accepts flags that VPP rejects: no tags, one tag of any ID.
//
// No packet is walked between requests that arrived together: VPP without workers handles them first.
//
// Goroutines: an accept loop, and a reader and a writer for each connection; Close ends and awaits them all. One mutex represents VPP's main
// thread. A walk over several fakes locks one at a time.
package vppfake
