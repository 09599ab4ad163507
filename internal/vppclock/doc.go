// Package vppclock compares VPP's clock with the kernel's.
//
// VPP counts the ticks of the processor, and needs their frequency. If the processor does not report the frequency (AMD's do not, nor do
// many virtual machines), VPP 25.10 measures it when it starts: for one millisecond, with system calls (estimate_clock_frequency of
// vppinfra/time.c). If VPP is preempted at the end of the measurement, as happens on a busy machine, its clock is several times too slow
// from then on; if it is preempted at the beginning, its clock is too fast. Later it corrects itself by 1 % at most, and takes larger
// differences for a fault of the kernel's clock. Then every timeout is wrong by that factor: those of NAT sessions, the ageing of
// neighbours and of MAC addresses, DHCP leases, the pauses of its processes. On two cores with six busy processes 20 of 3 000 such
// measurements were wrong by more than 5 %, the worst by a factor of 25.
//
// Only a restart of VPP can correct the clock. So contiv-vpp-supervisor (cmd/internal/vppsup) and the tests' VPPs
// (dataplane/vpp/vpptest) measure it after each start.
package vppclock
