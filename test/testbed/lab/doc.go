// Package lab is a cluster of two dual-stack nodes with a double of the Kubernetes API server, a machine outside of the
// cluster, and pods that come and go: what the soak and the benchmarks of the dataplane put load on. The agents, VPP and the
// CNI binary are the real ones.
package lab
