// Package wire implements the netlink protocol of nf_tables: messages and their codec, transactions in which the sequence number of each
// message identifies the object it is for, listings, expressions of rules, and views of our tables.
//
// A view covers the tables of one name. It stores the number of the kernel's generation, which every transaction of any program increases,
// and so detects whether another program has written; events show whether that concerned our tables. Only then, at the start, and on
// request after own changes, the view's user reads the tables again.
package wire
