// Package statscollector provides metrics of the dataplane: the counters of each interface by pod, and the time until a change of services
// in Kubernetes is in the dataplane.
//
// Interface counters (interfaces.go) are read when metrics are requested, from VPP's statistics segment or from the kernel; both can be
// read without delaying packets. A series has the name of its pod, and there are as many series as pods on the node: a deleted pod is
// missing in the next response, and pods above a limit are added up under "(other)", so that a faulty node cannot overload Prometheus.
//
// NAT (nat.go): with VPP, translated packets by pod are among the interface counters. Counting sessions by pod has a cost, so they are
// metrics only if the configuration enables them; contiv-netctl nat requests them in any case.
//
// Programming latency (programming.go) uses the names of kube-proxy's metrics, so that dashboards, alerts and the SLO of Kubernetes
// ("network programming latency") apply unchanged. The controller reports every event when its transaction has been applied.
package statscollector
