// Package epollshim is the source of a library which is preloaded into VPP 25.10. It keeps VPP from freezing when 16 af_packet
// interfaces have packets at once, and has idle threads sleep until their next timer. README.md says why; the vswitch's image and vpptest use it.
package epollshim
