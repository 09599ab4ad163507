// Package vppclock compares VPP's clock with the kernel's.
//
// VPP counts the processor's ticks, and has to know how many make a second. Where the processor does not tell (AMD's do not, nor do
// many virtual machines), VPP 25.10 measures it when it starts: for one millisecond, with system calls (estimate_clock_frequency of
// vppinfra/time.c). If it loses the processor at the end of that, as happens on a busy machine, its clock is several times too slow
// from then on, or too fast if at the beginning: later it corrects itself by 1 % at most, and takes anything more for a fault of the
// kernel's clock. Then every timeout is wrong by that factor: those of NAT sessions, the ageing of neighbours and of MAC addresses,
// DHCP leases, the pauses of its processes. On two cores with six busy processes 20 of 3 000 such measurements were wrong by more than
// 5 %, the worst by a factor of 25.
//
// Nothing can set it right but another start. So contiv-vpp-supervisor (cmd/internal/vppsup) and the tests' VPPs (dataplane/vpp/vpptest)
// ask after each one.
package vppclock
