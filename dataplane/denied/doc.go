// Package denied is how dataplanes report packets that network policy has dropped: VPP by our plugin's ring, Linux by the kernel's
// NFLOG. Both limit reports at the source, so that a pod that floods costs the agent next to nothing.
package denied
