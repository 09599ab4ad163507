// Package epstate holds what the in-process drivers of all systems share for endpoints: endpoint IDs as map keys, and endpoint status with the
// messages that report it.
package epstate
