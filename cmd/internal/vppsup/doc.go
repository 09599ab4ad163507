// Package vppsup keeps VPP running: it is what the VPP container runs (cmd/contiv-vpp-supervisor).
//
// VPP and the agent live in their own containers, so that neither's restart is the other's. A supervisor has to start VPP with a
// configuration that fits the node, and again when it crashed; the kubelet would do the latter only after ten seconds and more. The
// supervisor does it at once, and slows down when VPP does not stay up.
//
// startup.conf is a pure function of Settings (startup.go), which come from contiv.conf, flags and a few facts about the node (facts.go).
// NICs that contiv.conf names by VPP's name for a PCI device ("GigabitEthernet0/8/0") are given to VPP by DPDK, and no others: VPP takes
// all that it finds unless its configuration names some. They stay bound to vfio-pci while VPP is down, so that a restart finds them as
// they were. NICs by AF_PACKET ("host-eth1") stay with the kernel; the agent attaches VPP to them.
//
// One goroutine (supervisor.go) owns the process: it starts, reaps (orphans of others included: it is process 1 of its container), forwards
// the signals that end it, and decides about restarts. A probe (probe.go) greets VPP's API every second; a VPP that is silent for long is
// frozen and gets killed. The health socket (health.go) answers the kubelet's probes.
package vppsup
