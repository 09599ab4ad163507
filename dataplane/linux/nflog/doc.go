// Package nflog receives the packets that rules send to a group of the kernel's NFLOG (nfnetlink_log).
package nflog
