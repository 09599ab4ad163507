// Package bulk transfers checked data between namespaces of the testbed: TCP streams of megabytes in both directions at once,
// and single UDP packets of a given size. Every received byte is compared with the sent one, so that a frame that was
// corrupted, truncated, repeated or reordered makes the transfer fail. Like whoami, it runs in the test's process with
// sockets in the namespaces.
package bulk
