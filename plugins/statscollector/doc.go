// Package statscollector turns what moves packets into metrics: the counters of each interface by pod, and how long it takes until what
// Kubernetes says about services is in the dataplane.
//
// Interface counters (interfaces.go) are read when metrics are requested, from VPP's statistics segment or the kernel, both of which give
// them without disturbing packets. A series is named by its pod, and there are as many as there are pods on the node: what has gone is gone
// from the next answer, and above a limit pods are added up under "(other)", so that a broken node cannot flood Prometheus.
//
// NAT (nat.go): translated packets by pod are among the interface counters with VPP. Sessions by pod cost something to count, so that they
// are metrics only where the configuration enables them; contiv-netctl nat asks for them in any case.
//
// Programming latency (programming.go) has the names of kube-proxy's metrics, so that dashboards, alerts and the SLO of Kubernetes
// ("network programming latency") apply as they are. The controller reports every event when its transaction has been applied.
//
// The plugin is also an event handler: it keeps what Kubernetes says of this node's pods, for contiv-netctl check (GET
// /contiv/v1/kubernetes/pods).
package statscollector
