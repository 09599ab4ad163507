// Package vppfake is a fake VPP 25.10: it speaks the binary API over its unix socket, keeps state, answers with the return codes of the
// real one, walks packets through that state, and breaks on demand. Any govpp client connects to it unchanged.
//
//	f := vppfake.New(vppfake.Config{Seed: 1})
//	defer f.Close()
//	err := f.Listen(socket)              // connect govpp to socket, configure
//	r, err := f.Send("pod-1", packet)    // what would become of this packet?
//	f.Faults.Add(vppfake.Fault{Message: "ip_route_add_del_v2", Nth: 3, Retval: -7})
//	f.Crash()                            // state gone, connections dropped, started again
//	text := f.Dump()                     // the whole state, to compare
//
// # A fake, held to the real thing
//
// testdata/contract has what a real VPP 25.10 answered to lists of requests, field by field, and testdata/packets what came out of its
// packet generator. TestContractFake and TestPacketsFake compare the fake with them, everywhere; TestContractVPP and TestPacketsVPP compare
// the real VPP with them, where there is one (root, vpp on PATH). A difference is a bug of the fake. After adding a scenario, or for
// another VPP:
//
//	go test ./dataplane/vpp/vppfake -run 'VPP$' -args -update
//
// So oddities are VPP's, for example: delete_loopback on a sub-interface deletes its parent; deleting an address with a wrong prefix length
// succeeds and leaves the connected route behind; a static neighbour outlives its interface and belongs to the next one with that index;
// MAC table entries outlive ports and bridge domains; VLAN tag rewriting outlives an interface that is deleted in layer 3; with one half of
// a cross-connect goes the other, even out of a bridge domain that it has moved to; routes keep the host bits of their first prefix;
// sw_interface_set_l2_bridge makes a bridge domain that is not there. And the worst: a route whose interface is deleted under it is dead
// for good, and so is every route that is given the same paths while it exists, although the API says 0 and the dump looks right
// (deadpaths.go).
//
// # Adding a kind of objects
//
// One file, with a register function that enters the messages (on, dump, event) and, if the objects are not part of an interface, a dump
// function for Fake.Dump; one line in objectKinds; one scenario in the contract. If packets meet the objects, one place in the walk_ files.
// A request whose list is counted by a u32 needs counted (a test fails without it).
//
// # What it refuses
//
// A message without a handler is not in the message table: govpp fails at once, as with a VPP that lacks the plugin. Whatever still arrives
// without a handler, truncated, or under another client's index is ignored, as VPP does, and kept in Refused. A walk that comes to
// something the fake does not model ends with ErrNotUnderstood.
//
// Requests that abort VPP (sr_policy_add and _v2 without SIDs, memif_create in punt-inject mode, a balanced NAT mapping of more than 255
// backends, disabling NAT under balanced mappings) crash the fake: everybody's state and connections are gone, see Crashes. So does a
// packet for a NAT mapping whose weights add up to a multiple of 256.
//
// # Limits
//
//   - API: what objectKinds lists. No SRv6, IPsec, statistics segment, multicast, MPLS, BIER, classify
//     tables. MFIBs of a table are not kept. ip_table_replace, address replace: no.
//   - Tables: fe80::/10 as VPP shows it, without the link-local tables behind it.
//   - Attributes of hardware that VPP asks the driver for (speed, duplex, host MTU) are 0 or fixed. A memif has no peer:
//     its link stays down. A host device or network namespace exists unless Config.Host says no.
//   - Time: neighbours do not age, MAC table entries are not scanned away after a flush, ARP and ND are not sent. An
//     unresolved next hop is a drop ("no adjacency").
//   - Events come once per request; VPP may merge those of several requests.
//   - Stats indices are numbers without meaning. feature_enable_disable has the arcs, not the features of each.
//   - Packets: the choice among equal paths is deterministic but not VPP's; of ICMP errors only those of routes that reject
//     are made (Result.Errors), without VPP's limit of their rate, and no echo replies; VPP's own ports say nothing; packets
//     longer than the MTU are marked as fragmented or dropped, not cut up; a packet on an interface that is down is dropped
//     (VPP's packet generator puts it in all the same). IPv6 neighbour discovery is not answered; Config.Resolve says what it,
//     and ARP, would find out.
//   - Worker threads only serve receive queues, on paper (Config.Workers). Fake.Dump leaves out receive modes and placements.
//   - NAT: NAT44-ED, with VPP's own random choices of ports and backends when Config.Workers is at most 1. Sessions do not
//     age and are not reused when the limit is reached; fragments and protocols other than TCP, UDP and ICMP do not pass it; an
//     ICMP error about nothing that is known leaves no session behind; there is no handing over between worker threads.
//   - Our own plugin (dataplane/vpp/plugin, Config.Plugin): by the rules of its README. Maglev's choice is another one than the
//     plugin's, rejections are not limited in rate, and pieces of packets that wait for the first one wait for ever.
//   - DHCP: only what the API has. Fake.Lease plays the server.
//   - VLAN tag rewriting and ARP termination are kept, but a walk that comes to them does not go on. Flow hashes are kept.
//   - create_subif takes flags that VPP refuses: no tags, one tag that may be any.
//
// No packet is walked between requests that have come together: VPP without workers handles them first.
//
// Goroutines: an accept loop, and a reader and a writer for each connection; Close ends and awaits them all. One mutex is VPP's main
// thread. A walk over several fakes locks one at a time.
package vppfake
