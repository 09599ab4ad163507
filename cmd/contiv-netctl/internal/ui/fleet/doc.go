// Package fleet queries all agents for the page of "contiv-netctl ui", and converts their answers to what a view shows: topology with live
// health, pods and services, what is dropped and why, and the event history. Package ui serves the results; it has no queries of its own, and
// fleet has no HTTP server.
//
//   - fleet.go queries the agents. The interval depends on how long the answers take, and not on how many pages are open.
//   - topology.go, workloads.go, drops.go and events.go have one view each; keys.go names values by their keys.
package fleet
