// Package hostnat renders the host's part in services that VPP serves: the host redirects packets for node ports at its own addresses to VPP.
// The values are nb.NodePorts, one for each family; dataplane/hostports applies them.
package hostnat
