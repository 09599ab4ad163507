package relay

import (
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
)

const (
	// KeyPrefix is what all that is relayed begins with, below clusterdb.KSRPrefix.
	KeyPrefix = model.KeyPrefix
	// MarkerKey is there, below clusterdb.KSRPrefix, while the state of Kubernetes is complete. It is among the values and before
	// all of them, so that who deletes them from the first to the last begins with it.
	MarkerKey = KeyPrefix + ".complete"
	// statePrefix is KeyPrefix in etcd.
	statePrefix = clusterdb.KSRPrefix + KeyPrefix
	// markerKey is MarkerKey in etcd.
	markerKey = clusterdb.KSRPrefix + MarkerKey
	// electionPrefix is contiv-ksr's; it is not a part of the state.
	electionPrefix = "/contiv-ksr/election/"
)

// Resources are the kinds of values that the relay writes, for an agent's watcher.
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
