// Package infra holds the few things that every plugin with a documented API embeds. It stands in for cn-infra's package of
// the same name, which cannot be had (docs/adr/0001), and is all of it that we need.
package infra
