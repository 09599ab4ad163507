// Package infra has the types that every plugin with a documented API embeds. It replaces cn-infra's package of the same
// name, which is not available (docs/adr/0001), and has only the parts that we need.
package infra
