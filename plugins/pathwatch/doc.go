// Package pathwatch watches the data path of this node: it checks whether packets get through, not whether processes run. Even if the agent
// and VPP are healthy, no packet may get through, because a ring is stuck, a cable is disconnected or a table is full.
//
// Once a second (watch.go) it collects data that cost almost nothing:
//
//   - echo requests from the host to this node's own gateway in VPP, and through the overlay to the pod gateways of a few other
//     nodes (echo_linux.go). They use the path of pods' packets: the host's link, the tables, the tunnel, the uplink, and back.
//   - counters of the uplink and of the host's link, on both sides: VPP's and the Linux device's.
//   - the number of used entries in the table of NAT sessions.
//
// A node probes the same number of other nodes in a cluster of any size (picker.go): the two before it in the order of IDs, whose witness
// it is, two more in turn, and two of those that did not respond recently. So each node is probed every second by its two witnesses. An
// outage is detected within seconds, is reported to Kubernetes by two nodes and not by all, and does not increase the cost.
//
// The result of a round is the input of a pure core (core.go), which has the state of each link (link.go), each peer (peers.go) and the
// table (table.go), and returns the faults and their repair. A fault must last for several rounds, and only evidence about this node itself
// makes it unready: a silent peer is reported, a broken uplink makes the node unready. Some faults are repaired: a link whose device moves
// packets that VPP does not see, or vice versa, is deleted and created again (the pods keep their interfaces). If the reason is unknown,
// dataplane and desired state are compared. Both repairs are repeated with growing pauses (heal.go).
//
// Faults appear in the agent's readiness, GET /contiv/v1/datapath, contiv-netctl check, metrics (report.go), and in an Event and a
// condition of the Node (reporter.go). docs/troubleshooting.md describes each cause; docs/adr/0014 gives the reasons for this design.
package pathwatch
