// Package epollshim is the source of a library which, preloaded into VPP 25.10, keeps it from freezing when 16 af_packet
// interfaces have packets at once. README.md says why; the vswitch's image and vpptest use it.
package epollshim
