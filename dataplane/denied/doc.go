// Package denied defines how dataplanes report packets that network policy has dropped: VPP through the ring of our plugin, Linux through the
// kernel's NFLOG. Both limit reports at the source, so that a pod that floods causes almost no cost in the agent.
package denied
