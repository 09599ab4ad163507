package iptables

import "contiv.dev/vswitch/dataplane/linux/table"

// layerName is iptables' name of a layer: its table.
type layerName string

var layerNames = [...]layerName{table.Raw: "raw", table.Mangle: "mangle", table.NAT: "nat", table.Filter: "filter"}

var hookNames = [...]string{
	table.Prerouting: "PREROUTING", table.Input: "INPUT", table.Forward: "FORWARD", table.Output: "OUTPUT",
	table.Postrouting: "POSTROUTING",
}

// hasHook reports whether the kernel calls the layer at the hook.
func hasHook(l table.Layer, h table.Hook) bool {
	switch l {
	case table.Raw:
		return h == table.Prerouting || h == table.Output
	case table.Mangle:
		return h <= table.Postrouting
	case table.NAT:
		return h <= table.Postrouting && h != table.Forward
	case table.Filter:
		return h == table.Input || h == table.Forward || h == table.Output
	}
	return false
}
