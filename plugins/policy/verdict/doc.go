// Package verdict judges packets by a compiled policy, as package model defines it. It answers "which policy drops this?", and it is
// the reference that dataplanes are compared with.
package verdict
