// Package nsdo runs functions inside a network namespace. What belongs to the namespace of the calling thread needs it: new
// sockets, child processes and /proc/sys/net.
package nsdo
