package watchdogshim

import _ "embed" // for the source

// Source is the C source of the library.
//
//go:embed src/watchdogshim.c
var Source string
