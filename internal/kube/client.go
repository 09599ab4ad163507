package kube

import (
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// Default limits of requests to the API server. The agent has eight watches and few other requests.
const (
	defaultQPS   = 20
	defaultBurst = 40
)

// protobufType is the encoding that is the fastest for the API server.
const protobufType = "application/vnd.kubernetes.protobuf"

// Config describes how to reach the API server.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file; empty: the service account of the agent's pod.
	Kubeconfig string
	// Server replaces the address of the API server, e.g. "https://192.0.2.1:6443". Without it a pod connects to the service "kubernetes";
	// at boot this needs the service proxy, which itself waits for the API server.
	Server string
	// QPS and Burst limit the requests per second; 20 and 40 when zero.
	QPS   float32
	Burst int
	// UserAgent names the agent in the API server's logs.
	UserAgent string
}

// RegisterFlags registers the flags of the API server; the defaults are the values of c.
func (c *Config) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "kubeconfig file for the API server (default: the pod's service account)")
	f.StringVar(&c.Server, "kubernetes-server", c.Server, "URL of the API server, for a node on which service addresses do not "+
		"work yet")
}

// definitions is the API group of CustomResourceDefinitions.
var definitions = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}

// Client reads from the API server. It has only the API groups that the agent uses, so that the types of all of Kubernetes are not linked
// into the agent.
type Client struct {
	groups map[schema.GroupVersion]rest.Interface
	host   string
}

// NewClient returns a client; it does not connect yet.
func NewClient(cfg Config) (*Client, error) {
	rc, err := restConfig(cfg)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes API client: %w", err)
	}
	return newClient(rc, httpClient)
}

func restConfig(cfg Config) (rc *rest.Config, err error) {
	if cfg.Kubeconfig == "" {
		if rc, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("no kubeconfig is given, and this is not a pod with a service account: %w", err)
		}
		if cfg.Server != "" {
			rc.Host = cfg.Server
		}
	} else if rc, err = clientcmd.BuildConfigFromFlags(cfg.Server, cfg.Kubeconfig); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", cfg.Kubeconfig, err)
	}
	rc.QPS, rc.Burst, rc.UserAgent = cfg.QPS, cfg.Burst, cfg.UserAgent
	if rc.QPS == 0 {
		rc.QPS = defaultQPS
	}
	if rc.Burst == 0 {
		rc.Burst = defaultBurst
	}
	if rc.UserAgent == "" {
		rc.UserAgent = "contiv-agent"
	}
	rc.AcceptContentTypes, rc.ContentType = protobufType+",application/json", protobufType
	return rc, nil
}

func newClient(rc *rest.Config, httpClient *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, npapi.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("Kubernetes API client: %w", err)
		}
	}
	codecs := serializer.NewCodecFactory(scheme)
	c := &Client{groups: map[schema.GroupVersion]rest.Interface{}, host: rc.Host}
	for _, gv := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion,
		schema.GroupVersion(npapi.GroupVersion), definitions,
	} {
		group := rest.CopyConfig(rc)
		group.GroupVersion, group.APIPath = &gv, "/apis"
		if gv.Group == "" {
			group.APIPath = "/api"
		}
		if gv.Group == npapi.GroupName {
			group.ContentType = "application/json" // custom resources have no other encoding
		}
		group.NegotiatedSerializer = codecs.WithoutConversion()
		client, err := rest.RESTClientForConfigAndClient(group, httpClient)
		if err != nil {
			return nil, fmt.Errorf("Kubernetes API client for %s: %w", gv, err)
		}
		c.groups[gv] = client
	}
	return c, nil
}
