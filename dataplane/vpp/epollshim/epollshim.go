package epollshim

import _ "embed" // for the source

// Source is the C source of the library.
//
//go:embed src/epollshim.c
var Source string
