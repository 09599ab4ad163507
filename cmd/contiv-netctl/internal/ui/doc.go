// Package ui serves the page of "contiv-netctl ui": topology with live health, pods and services, what is dropped and why, the event
// history with its transactions, and packet traces drawn as paths.
//
// The page is embedded (web/): HTML, CSS and JavaScript modules without a build step and without anything from other servers. The
// server runs in contiv-netctl, on a loopback address, for as long as the command; the cluster runs nothing for it. It asks the agents
// through cmd/contiv-netctl/internal/client, by GET only.
//
//   - server.go listens and routes; guard.go decides which requests are answered: the host names of loopback, a secret that only the
//     terminal shows, GET.
//   - fleet.go asks the agents, no more often than a pace that follows how long the answers take, however many pages are open.
//   - topology.go, workloads.go, drops.go and events.go make of the answers what a view shows.
//
// A trace sends a packet and needs the token for full access, so it is off unless the command allows it (--allow-trace). Then one POST
// exists, for the page's own origin only. Traces that contiv-netctl trace -o json has saved are drawn without it.
package ui
