// Package verdict evaluates packets with a compiled policy, as defined by package model. It answers "which policy drops this packet?", and
// it is the reference with which dataplanes are compared.
package verdict
