package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// fakeAPI is an API server that tests control completely.
type fakeAPI struct {
	*kubeapi.Server
	t   *testing.T
	url string
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{Server: kubeapi.New(), t: t}
	l := httptest.NewServer(f.Server)
	f.url = l.URL
	t.Cleanup(func() {
		f.Server.Close()
		l.CloseClientConnections()
		l.Close()
	})
	return f
}

func (f *fakeAPI) client() *Client {
	f.t.Helper()
	// The encoding is the one that the agent requests.
	c, err := newClient(&rest.Config{Host: f.url, QPS: -1, ContentConfig: rest.ContentConfig{
		AcceptContentTypes: protobufType + ",application/json", ContentType: protobufType,
	}}, &http.Client{Transport: &http.Transport{}})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// put creates or updates an object.
func (f *fakeAPI) put(obj kubeapi.Object) {
	f.t.Helper()
	if err := f.Put(obj); err != nil {
		f.t.Fatal(err)
	}
}

// remove deletes an object, if it exists.
func (f *fakeAPI) remove(obj kubeapi.Object) {
	f.t.Helper()
	if err := f.Delete(obj); err != nil {
		f.t.Fatal(err)
	}
}
