// Package vppsup keeps VPP running. It is the main program of the VPP container (cmd/contiv-vpp-supervisor).
//
// VPP and the agent run in separate containers, so that a restart of one does not restart the other. The supervisor starts VPP with a
// configuration that fits the node, and restarts it after a crash; the kubelet would restart it only after ten seconds or more. The supervisor
// restarts it at once, with increasing delays if VPP does not stay up.
//
// startup.conf is a pure function of Settings (startup.go), which come from contiv.conf, flags and a few facts about the node (facts.go). NICs
// that contiv.conf names by VPP's name for a PCI device ("GigabitEthernet0/8/0") are given to VPP by DPDK, and no others: VPP takes all
// devices that it finds unless its configuration names some. They stay bound to vfio-pci while VPP is down, so that a restart finds them
// unchanged. NICs by AF_PACKET ("host-eth1") stay with the kernel; the agent attaches VPP to them.
//
// One goroutine (supervisor.go) owns the process: it starts VPP, reaps children (including orphans of other processes, because it is process 1
// of its container), forwards the signals that end VPP, and decides about restarts. A probe (probe.go) connects to VPP's API every second; a
// VPP that does not respond for long is frozen and is killed. The health socket (health.go) answers the kubelet's probes.
package vppsup
