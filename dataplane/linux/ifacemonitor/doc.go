// Package ifacemonitor informs the Linux driver which links and addresses its network namespace has. It subscribes to the kernel's
// notifications before it lists for the first time, so that nothing is missed in between, and lists again whenever notifications were lost.
package ifacemonitor
