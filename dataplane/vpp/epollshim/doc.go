// Package epollshim is the source of a library that is preloaded into VPP 25.10. It prevents VPP from freezing when 16 af_packet interfaces have
// packets at once, and makes idle threads sleep until their next timer. README.md has the reasons; the vswitch's image and vpptest use the
// library.
package epollshim
