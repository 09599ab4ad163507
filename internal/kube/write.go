package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// The following methods send single requests, for installation and pre-flight (cmd/contiv-init). The agent itself only watches.

func (c *Client) core() rest.Interface { return c.groups[corev1.SchemeGroupVersion] }

// NodeCondition is an entry of a node's status.conditions.
type NodeCondition struct {
	Type    string
	Status  bool
	Reason  string // one word in CamelCase
	Message string
}

// SetNodeCondition updates the conditions of the node that differ from want.
func (c *Client) SetNodeCondition(ctx context.Context, name string, want ...NodeCondition) error {
	var node corev1.Node
	if err := c.core().Get().Resource("nodes").Name(name).Do(ctx).Into(&node); err != nil {
		return fmt.Errorf("read node %s: %w", name, err)
	}
	now := metav1.Now()
	var changed []corev1.NodeCondition
	for _, w := range want {
		cond := corev1.NodeCondition{
			Type: corev1.NodeConditionType(w.Type), Status: corev1.ConditionFalse, Reason: w.Reason, Message: w.Message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if w.Status {
			cond.Status = corev1.ConditionTrue
		}
		same := false
		for _, have := range node.Status.Conditions {
			if have.Type != cond.Type {
				continue
			}
			same = have.Status == cond.Status && have.Reason == cond.Reason && have.Message == cond.Message
			if have.Status == cond.Status {
				cond.LastTransitionTime = have.LastTransitionTime
			}
		}
		if !same {
			changed = append(changed, cond)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": changed}})
	if err != nil {
		return fmt.Errorf("conditions of node %s: %w", name, err)
	}
	err = c.core().Patch(types.StrategicMergePatchType).
		Resource("nodes").Name(name).SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("set conditions of node %s: %w", name, err)
	}
	return nil
}

// NodeEvent is an event of a node.
type NodeEvent struct {
	Node      string
	Component string
	Reason    string // one word in CamelCase
	Message   string
	Warning   bool
}

// WriteEvent writes an Event about a node, which `kubectl describe node` shows. A repeated event updates the time of the existing Event.
func (c *Client) WriteEvent(ctx context.Context, e NodeEvent) error {
	now := metav1.NewTime(time.Now())
	sum := sha256.Sum256([]byte(e.Reason + "\x00" + e.Message))
	ev := &corev1.Event{
		// Events about objects without a namespace belong to the default namespace; they use the node's name as its UID, as the kubelet
		// does.
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s.%x", e.Node, sum[:6])},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: e.Node, UID: types.UID(e.Node), APIVersion: "v1"},
		Reason:         e.Reason, Message: e.Message, Type: corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: e.Component, Host: e.Node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1, ReportingController: e.Component, ReportingInstance: e.Node,
	}
	if e.Warning {
		ev.Type = corev1.EventTypeWarning
	}
	err := c.core().Post().Namespace(ev.Namespace).Resource("events").Body(ev).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"lastTimestamp": now}); err == nil {
			err = c.core().Patch(types.MergePatchType).
				Namespace(ev.Namespace).Resource("events").Name(ev.Name).Body(patch).Do(ctx).Error()
		}
	}
	if err != nil {
		return fmt.Errorf("write event %s about node %s: %w", e.Reason, e.Node, err)
	}
	return nil
}

// ObjectEvent is an event of an API object.
type ObjectEvent struct {
	APIVersion, Kind, Namespace, Name, UID string

	Component string
	Node      string // the node that reports the event
	Reason    string // one word in CamelCase
	Message   string
}

// maxEventMessage is the longest message that the API server accepts.
const maxEventMessage = 1024

// WriteObjectEvent writes a Warning about an object, which `kubectl describe` shows. A repeated event, from this node or another one,
// updates the existing Event.
func (c *Client) WriteObjectEvent(ctx context.Context, e ObjectEvent) error {
	now := metav1.NewTime(time.Now())
	e.Message = strings.ToValidUTF8(e.Message[:min(len(e.Message), maxEventMessage)], "")
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Kind, e.UID, e.Reason, e.Message}, "\x00")))
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(e.Namespace, metav1.NamespaceDefault), Name: fmt.Sprintf("%s.%x", strings.TrimRight(e.Name[:min(len(e.Name), 200)], "-."), sum[:6]),
		},
		InvolvedObject: corev1.ObjectReference{
			Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: types.UID(e.UID), APIVersion: e.APIVersion,
		},
		Reason: e.Reason, Message: e.Message, Type: corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: e.Component, Host: e.Node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1, ReportingController: e.Component, ReportingInstance: e.Node,
	}
	err := c.core().Post().Namespace(ev.Namespace).Resource("events").Body(ev).Do(ctx).Error()
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err), apierrors.IsBadRequest(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the object's namespace was deleted, or the object cannot have an Event: a retry would not help
	}
	return fmt.Errorf("write event %s about %s %s/%s: %w", e.Reason, e.Kind, e.Namespace, e.Name, err)
}

// AnyPolicy reports whether a NetworkPolicy or a ClusterNetworkPolicy exists in the cluster.
func (c *Client) AnyPolicy(ctx context.Context) (bool, error) {
	var list networkingv1.NetworkPolicyList
	err := c.groups[networkingv1.SchemeGroupVersion].Get().Resource("networkpolicies").Param("limit", "1").Do(ctx).Into(&list)
	if err != nil {
		return false, fmt.Errorf("list network policies: %w", err)
	}
	if len(list.Items) > 0 {
		return true, nil
	}
	var cluster npapi.ClusterNetworkPolicyList
	err = c.groups[schema.GroupVersion(npapi.GroupVersion)].Get().Resource(clusterPolicies).Param("limit", "1").Do(ctx).Into(&cluster)
	if apierrors.IsNotFound(err) {
		return false, nil // the cluster does not have the API
	}
	if err != nil {
		return false, fmt.Errorf("list cluster network policies: %w", err)
	}
	return len(cluster.Items) > 0, nil
}

// Secret returns the data of a Secret; ok is false when it does not exist.
func (c *Client) Secret(ctx context.Context, namespace, name string) (data map[string][]byte, ok bool, err error) {
	var s corev1.Secret
	err = c.core().Get().Namespace(namespace).Resource("secrets").Name(name).Do(ctx).Into(&s)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read secret %s/%s: %w", namespace, name, err)
	}
	return s.Data, true, nil
}

// CreateSecret creates an immutable Secret of type Opaque; created is false when one exists already.
func (c *Client) CreateSecret(ctx context.Context, namespace, name string, labels map[string]string, data map[string][]byte) (
	created bool, err error,
) {
	fixed := true
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: data, Immutable: &fixed,
	}
	err = c.core().Post().Namespace(namespace).Resource("secrets").Body(s).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create secret %s/%s: %w", namespace, name, err)
	}
	return true, nil
}

// Endpoint is the address of a pod of a service.
type Endpoint struct {
	Pod  string
	Addr netip.Addr
}

// Endpoints returns the pods of a service, ready or not; a pod with several addresses has several entries.
func (c *Client) Endpoints(ctx context.Context, namespace, service string) ([]Endpoint, error) {
	var slices discoveryv1.EndpointSliceList
	err := c.groups[discoveryv1.SchemeGroupVersion].Get().Namespace(namespace).Resource("endpointslices").
		Param("labelSelector", discoveryv1.LabelServiceName+"="+service).Do(ctx).Into(&slices)
	if err != nil {
		return nil, fmt.Errorf("read the endpoints of service %s/%s: %w", namespace, service, err)
	}
	var all []Endpoint
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			pod := ""
			if e.TargetRef != nil {
				pod = e.TargetRef.Name
			}
			for _, text := range e.Addresses {
				addr, err := netip.ParseAddr(text)
				if err != nil {
					return nil, fmt.Errorf("endpoint %q of service %s/%s: %w", text, namespace, service, err)
				}
				all = append(all, Endpoint{Pod: pod, Addr: addr})
			}
		}
	}
	return all, nil
}
