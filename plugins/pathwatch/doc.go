// Package pathwatch watches the data path of this node: whether packets get through, not whether processes run. An agent and a VPP that are
// in the best of health may move nothing, because a ring is wedged, a cable is out or a table is full.
//
// Once a second (watch.go) it collects what can be seen at nearly no cost:
//
//   - echo requests from the host to this node's own gateway in VPP, and by the overlay to the pod gateways of a few other nodes
//     (echo.go). They take the way of pods' packets: the host's link, the tables, the tunnel, the uplink, and the same back.
//   - counters of the uplink and of the host's link, on both sides: VPP's and the Linux device's.
//   - how full the table of NAT sessions is.
//
// A node asks the same number of others however many there are (picker.go): the two before it in the order of IDs, which it is the witness
// of, two more in turn, and two of those that did not answer lately. So each node is asked every second by its two witnesses, and an outage
// is noticed within seconds, reported to Kubernetes by two nodes and not by all, and costs what it always does.
//
// What the round has seen goes into a pure core (core.go), which has the state of each link (link.go), each peer (peers.go) and the table
// (table.go), and answers with what is wrong and what is to be done about it. Nothing is believed at first sight, and the node is unready
// only by evidence on its own side: a peer that is silent is reported, an uplink that is broken makes the node unready. What can be healed
// is: a link whose device moves packets that VPP does not see, or the other way round, is deleted and created again (under its pods, which
// keep what they have); where nothing shows why, dataplane and desired state are compared. Both after growing pauses (heal.go).
//
// What is wrong is seen in the agent's readiness, GET /contiv/v1/datapath, contiv-netctl check, metrics (report.go), and in an Event and a
// condition of the Node (tell.go). docs/troubleshooting.md says what each cause means; docs/adr/0014 why it is done like this.
package pathwatch
