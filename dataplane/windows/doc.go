// Package windataplane is the in-process Windows dataplane driver: it takes the messages of dataplane/proto (IP sets, policies, profiles,
// endpoints, routes to other nodes, tunnel ends) and makes the Host Network Service (HNS) do what they say. It uses HNS through interfaces
// only (packages hns and hcn), so it builds and is tested on every system; package hnsmem is an HNS in memory.
//
// # Architecture
//
// The driver is organised around one loop (dataplane/driver). In the first phase each message goes to all managers, which only take notes.
// The second phase, in which managers talk to HNS, is held back until the datastore has said InSync and the node's own addresses are known,
// so that the first write is a consistent snapshot; then it is throttled.
//
// HNS has nothing like an IP set. So sets and policies are caches here, and an endpoint's rules are made from them: tiers and profiles
// become one list of rules in each direction, a rule that passes becomes the rules of the next tier, narrowed to what it matches, and the
// members of sets become lists of addresses. Equal priorities stand for rules whose order does not count.
//
// # What is written, and when
//
// An endpoint's list is replaced only if it differs from what HNS has: every replacement disturbs connections. A member of a set concerns
// the endpoints whose rules use the set, and no other. A restart reads what HNS has, and writes nothing if that is as it should be. HNS is
// compared in full after Config.RefreshInterval, and its list of endpoints is asked for after ten minutes.
//
// # What HNS cannot express
//
// Types and codes of ICMP, "all protocols but one", "all except the ports of a set", ports of SCTP, HTTP; on Windows Server 2016 wide
// ranges of ports; more rules than an endpoint takes. Such a rule is closed: one that allows allows nothing, one that denies or passes
// blocks whatever the rest of it matches. The endpoint's status is then "error", and Status has the reason. Negated nets, ports and sets of
// addresses are subtracted, so they work. A rule that logs does nothing.
//
// # Faults
//
// Each endpoint's trouble is its own: it is closed or keeps what it had, its status is "error" (or "down" while HNS has no such endpoint),
// and it is tried again after five seconds. A call of HNS that hangs is given up after Options.CallTimeout; there is no second one for the
// same object until it has ended. Status messages wait for nothing: the latest of each endpoint is kept until it is read.
//
// # Requirements on the sender
//
// The driver does no consistency checks on what it receives. An object is announced before what refers to it, and removed after it. What
// refers to an unknown policy or set blocks meanwhile.
//
// # Example
//
// examples/windowsdriver, a module of its own, drives it by messages on an HNS in memory.
package windataplane
