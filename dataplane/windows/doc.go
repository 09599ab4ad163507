// Package windataplane is the in-process Windows dataplane driver. It receives the messages of dataplane/proto (IP sets, policies, profiles,
// endpoints, routes to other nodes, tunnel ends) and programs the Host Network Service (HNS) accordingly. It uses HNS through interfaces only
// (packages hns and hcn), so it builds and is tested on every system; package hnsmem is an HNS in memory. The package has the
// name of Felix's package with the same API (windataplane, Felix's dataplane/windows).
//
// # Architecture
//
// The driver is organised around one loop (dataplane/driver). In the first phase each message goes to all managers, which only store it. The
// second phase, in which managers call HNS, starts only after the datastore has sent InSync and the node's own addresses are known, so that
// the first write is a consistent snapshot; later it is throttled.
//
// HNS has no IP sets. So the driver caches sets and policies, and renders an endpoint's rules from them: tiers and profiles become one list of
// rules in each direction, a rule with the action pass becomes the rules of the next tier, restricted to the packets that it matches, and the
// members of sets become lists of addresses. Rules whose order does not matter have equal priorities.
//
// # What is written, and when
//
// An endpoint's list is replaced only if it differs from the list in HNS, because every replacement disturbs connections. A change of a set's
// members affects only the endpoints whose rules use the set. After a restart the driver reads the state of HNS, and writes nothing if it is
// as desired. HNS is compared in full after Config.RefreshInterval, and its list of endpoints is requested after ten minutes.
//
// # What HNS cannot express
//
// Types and codes of ICMP, "all protocols but one", "all except the ports of a set", ports of SCTP, HTTP; on Windows Server 2016 wide ranges
// of ports; more rules than an endpoint can have. Such a rule is closed: an allow rule allows nothing, a deny or pass rule blocks all packets
// that the rest of it matches. The endpoint's status is then "error", and Status has the reason. Negated nets, ports and sets of addresses are
// subtracted, so they work. A log rule has no effect.
//
// # Faults
//
// A fault of one endpoint does not affect the others: the endpoint is closed or keeps its previous rules, its status is "error" (or "down"
// while HNS has no such endpoint), and it is retried after five seconds. The driver stops waiting for a call of HNS after Options.CallTimeout;
// it makes no second call for the same object until the first one has ended. Status messages do not block the loop: the latest of each
// endpoint is kept until it is read.
//
// # Requirements on the sender
//
// The driver does no consistency checks on its input. An object must be announced before objects that refer to it, and removed after them.
// Endpoints that refer to an unknown policy, and rules that refer to an unknown set, block in the meantime.
//
// # Example
//
// examples/windowsdriver, a separate module, drives it by messages on an HNS in memory.
package windataplane
