// Package bulk moves checked data between namespaces of the testbed: TCP streams of megabytes in both directions at once, and
// single UDP packets of a given size. Every byte is compared with what was sent, so that a frame which was corrupted, cut,
// repeated or put in the wrong place makes the transfer fail. Like whoami, it runs in the test's process with sockets in the
// namespaces.
package bulk
