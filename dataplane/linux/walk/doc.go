// Package walk judges the first packet of a connection by the chains that the kernel has for an endpoint. The driver asks it which open
// connections policy would not let begin any more.
package walk
