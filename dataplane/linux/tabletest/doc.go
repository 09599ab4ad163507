// Package tabletest says what a table.Backend does to packets. Run is a suite of tests that any backend has to pass: it
// builds a small network out of namespaces (a host that forwards, pods on veths, a host outside), lets the backend program
// the host, and sends TCP, UDP, ICMP and SCTP packets through it. Nothing of the machine's own network is touched.
//
// The network and its probes (Net, Node, Probe, Stream) are exported because the driver's own tests stand on them too.
package tabletest
