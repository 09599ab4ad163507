// Package ui serves the page of "contiv-netctl ui": topology with live health, pods and services, what is dropped and why, the event
// history with its transactions, and packet traces drawn as paths.
//
// The page is embedded (web/): HTML, CSS and JavaScript modules, without a build step and without files from other servers. The server runs in
// contiv-netctl, on a loopback address, for as long as the command; the cluster runs nothing for it. It queries the agents through
// cmd/contiv-netctl/internal/client, by GET only.
//
//   - server.go listens and routes; guard.go decides which requests are answered: the Host header must name loopback, the
//     request must have the secret that only the terminal shows, and be a GET.
//   - fleet queries the agents and converts their answers to what a view shows.
//
// A trace sends a packet and needs the token for full access, so the page can send traces only with --allow-trace. With this flag the server
// accepts one POST request, for the page's own origin only. The page draws traces that were saved by contiv-netctl trace -o json without the flag.
package ui
