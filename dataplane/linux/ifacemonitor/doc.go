// Package ifacemonitor informs the Linux driver which links and addresses its network namespace has. What it follows is a netlink.Watch; it
// keeps what it has reported, and reports what differs.
package ifacemonitor
