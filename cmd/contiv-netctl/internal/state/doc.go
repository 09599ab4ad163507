// Package state has the queries that more than one command of netctl needs: nodes, pods, services, addresses, and their summary. The commands
// print them (cmd/contiv-netctl), and the page draws them (cmd/contiv-netctl/internal/ui), so that both show the same.
//
//   - rows.go has the types of the agents' answers.
//   - summary.go summarizes all nodes' answers on one screen, each line with ✓ or ✗, and the cause of each problem.
package state
