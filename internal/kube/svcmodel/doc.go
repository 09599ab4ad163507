// Package svcmodel has the identifier of services. The package and the type have the names that the
// documented API of plugins/service/renderer uses.
package svcmodel
