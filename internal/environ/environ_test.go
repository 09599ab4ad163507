package environ

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	known := []string{"CONTIV_ETCD_ENDPOINTS", "CONTIV_LOG_LEVEL", "CONTIV_ETCD_CA"}
	for _, tc := range []struct {
		environ []string
		want    string
	}{
		{[]string{"CONTIV_ETCD_ENDPOINTS=x", "PATH=/bin", "CONTIV_NAMESPACE=kube-system", "HOME"}, ""},
		{[]string{"CONTIV_ETCD_ENDPOINT=https://a:2379"}, "environment variable CONTIV_ETCD_ENDPOINT is unknown; did you mean CONTIV_ETCD_ENDPOINTS?"},
		{[]string{"CONTIV_LOGLEVEL=debug"}, "did you mean CONTIV_LOG_LEVEL?"},
		{[]string{"CONTIV_NODENAME=a"}, "did you mean CONTIV_NODE_NAME?"},
		{[]string{"CONTIV_=", "CONTIV_COLOUR_OF_THE_BIKE_SHED=red"}, "CONTIV_COLOUR_OF_THE_BIKE_SHED is unknown; remove it"},
		// variables that Kubernetes sets for a service contiv-etcd
		{[]string{"CONTIV_ETCD_SERVICE_HOST=10.96.0.9", "CONTIV_ETCD_SERVICE_PORT=1", "CONTIV_ETCD_SERVICE_PORT_CLIENT=1", "CONTIV_ETCD_PORT=tcp://x",
			"CONTIV_ETCD_PORT_12379_TCP=x", "CONTIV_ETCD_PORT_12379_TCP_ADDR=x"}, ""},
		{[]string{"CONTIV_ETCD_PORT=2379"}, "CONTIV_ETCD_PORT is unknown"},
	} {
		err := Check(known, tc.environ)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v\n  %v\n  want %q", tc.environ, err, tc.want)
		}
	}
}
