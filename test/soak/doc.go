// Command soak tests two nodes under combined load for the given time: streams of checked bytes in all directions and both families,
// short connections, services that change, pods that are added and deleted, agents that are killed. It ends with an error when VPP has
// ended, a stream makes no progress, a byte is wrong, a connection fails, memory grows, or resources are left behind. `make soak
// MINUTES=30` runs it. It needs root and touches nothing of the machine's own network namespace.
package main
