// Package lab is a cluster of two dual-stack nodes with a test double of the Kubernetes API server, a machine outside of the
// cluster, and pods that are added and deleted: the environment in which the soak and the benchmarks of the dataplane make
// load. The agents, VPP and the CNI binary are the real ones.
package lab
