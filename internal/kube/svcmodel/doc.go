// Package svcmodel names services. The package and the type have the names by which the documented API of
// plugins/service/renderer refers to them.
package svcmodel
