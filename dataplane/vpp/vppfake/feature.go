package vppfake

import (
	"maps"

	"go.fd.io/govpp/binapi/feature"
)

// featureKey is a feature of an arc on an interface.
type featureKey struct {
	ifx          uint32
	arc, feature string
}

func registerFeatures(t *table) {
	on(t, writes, featureEnableDisable)
	on(t, reads, func(c *call, q *feature.FeatureIsEnabled) *feature.FeatureIsEnabledReply {
		if c.iface(q.SwIfIndex) == nil {
			return &feature.FeatureIsEnabledReply{Retval: rvInvalidSwIfIndex}
		}
		return &feature.FeatureIsEnabledReply{IsEnabled: c.features[featureKey{uint32(q.SwIfIndex), q.ArcName, q.FeatureName}]}
	})
}

// knownArcs returns the feature arcs of VPP 25.10. The fake does not list the features of each arc: it accepts any name.
func knownArcs() []string {
	return []string{"device-input", "ethernet-output", "interface-output", "ip4-unicast", "ip4-multicast", "ip4-local", "ip4-output",
		"ip4-punt", "ip4-drop", "ip6-unicast", "ip6-multicast", "ip6-local", "ip6-output", "ip6-punt", "ip6-drop", "l2-input-ip4",
		"l2-input-ip6", "l2-input-nonip", "l2-output-ip4", "l2-output-ip6", "l2-output-nonip", "arp", "mpls-input", "mpls-output", "nsh-output"}
}

func featureEnableDisable(c *call, q *feature.FeatureEnableDisable) *feature.FeatureEnableDisableReply {
	if c.iface(q.SwIfIndex) == nil {
		return &feature.FeatureEnableDisableReply{Retval: rvInvalidSwIfIndex}
	}
	for _, arc := range knownArcs() {
		if arc != q.ArcName || q.FeatureName == "" {
			continue
		}
		key := featureKey{uint32(q.SwIfIndex), q.ArcName, q.FeatureName}
		if q.Enable {
			c.features[key] = true
		} else {
			delete(c.features, key)
		}
		return &feature.FeatureEnableDisableReply{}
	}
	return &feature.FeatureEnableDisableReply{Retval: rvInvalidValue}
}

func (st *state) dropFeatures(i *iface) {
	maps.DeleteFunc(st.features, func(k featureKey, _ bool) bool { return k.ifx == i.index })
	st.contiv.dropEndpoint(i.index)
}
