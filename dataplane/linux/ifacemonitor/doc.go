// Package ifacemonitor reports the links and addresses of the Linux driver's network namespace. It follows a netlink.Watch, stores what it
// has reported, and reports the differences.
package ifacemonitor
