// Package walk evaluates the chains that the kernel has for an endpoint on the first packet of a connection. The driver uses it to find
// open connections that policy would no longer allow to be opened.
package walk
