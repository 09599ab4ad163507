package kube

import (
	"contiv.dev/vswitch/plugins/controller/api"
)

type snapshotData api.KubeStateData

// Values returns the values of one resource.
func (s snapshotData) Values(keyword string) api.KeyValuePairs { return s[keyword] }

func (m *mirror) snapshot() snapshotData {
	m.mu.Lock()
	defer m.mu.Unlock()
	return snapshotData(m.snapshotLocked())
}
