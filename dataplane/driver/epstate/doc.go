// Package epstate has what the in-process drivers of all systems share about endpoints: their IDs as keys of maps, and their status with
// the messages that report it.
package epstate
