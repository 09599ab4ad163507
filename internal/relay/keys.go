package relay

import (
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
)

const (
	// KeyPrefix is the prefix of all relayed keys, below clusterdb.KSRPrefix.
	KeyPrefix = model.KeyPrefix
	// MarkerKey exists, below clusterdb.KSRPrefix, while the state of Kubernetes is complete. It sorts before all values, so that
	// a user that deletes the keys in order deletes the marker first.
	MarkerKey = KeyPrefix + ".complete"
	// statePrefix is the absolute key of KeyPrefix in etcd.
	statePrefix = clusterdb.KSRPrefix + KeyPrefix
	// markerKey is the absolute key of MarkerKey in etcd.
	markerKey = clusterdb.KSRPrefix + MarkerKey
	// electionPrefix is the prefix of contiv-ksr's election keys; it is not a part of the state.
	electionPrefix = "/contiv-ksr/election/"
)

// Resources returns the kinds of values that the relay writes, for an agent's watcher.
func Resources() []clusterdb.Resource {
	var decoder kube.Decoder
	keywords := model.Keywords()
	out := make([]clusterdb.Resource, 0, len(keywords))
	for _, keyword := range keywords {
		out = append(out, clusterdb.Resource{
			Keyword: keyword, KeyPrefix: model.Prefix(keyword), Complete: MarkerKey,
			New:    func() proto.Message { return model.New(keyword) },
			Decode: func(data []byte) (proto.Message, error) { return decoder.Decode(keyword, data) },
		})
	}
	return out
}
