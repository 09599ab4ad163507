// Package state is what netctl asks agents for more than one of its commands: nodes, pods, services, addresses and what they add up to.
// The commands print it (cmd/contiv-netctl), and the page draws it (cmd/contiv-netctl/internal/ui), so that both say the same.
//
//   - rows.go has what agents answer.
//   - summary.go makes one screen of all nodes' answers, each line with ✓ or ✗, and the cause of each problem.
package state
