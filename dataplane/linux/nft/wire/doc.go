// Package wire speaks nf_tables' netlink: messages and their codec, transactions in which every message has an object to blame by its
// sequence number, listings, expressions of rules, and views of our tables.
//
// A view is of one name of tables. It has the number of the kernel's generation, which every transaction of any program raises, and so
// finds whether another program has written; events say whether that was about our tables. Only if so, and at the start, and on request
// after own changes, its user reads the tables again.
package wire
