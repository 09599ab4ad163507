// Package hostend renders what the host's own stack has to do for services that VPP serves: hand what it gets for node ports at its own
// addresses to VPP. The values are nb.NodePorts, one for each family; dataplane/hostports carries them out.
package hostend
