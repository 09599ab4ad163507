// Command soak puts two nodes under everything at once for the given time: streams of checked bytes in all directions and both families,
// short connections, services that change, pods that come and go, agents that are killed. It ends with an error when VPP has ended, a
// stream stands still, a byte is wrong, a connection fails, memory grows, or something is left. `make soak MINUTES=30` runs it. It needs
// root and touches nothing of the machine's own network namespace.
package main
