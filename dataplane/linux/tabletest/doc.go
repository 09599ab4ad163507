// Package tabletest checks the effect of a table.Backend on packets. Run is a suite of tests that every backend must pass: it builds a
// small network of namespaces (a host that forwards, pods on veths, a host outside), lets the backend program the host, and sends TCP, UDP,
// ICMP and SCTP packets through it. The machine's own network is not touched.
//
// The network and its probes (Net, Node, Probe, Stream) are exported because the driver's own tests use them too.
package tabletest
