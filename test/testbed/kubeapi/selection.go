package kubeapi

import (
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection describes the objects of a resource that a client selects.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(namespace string, q url.Values) (sel selection, err error) {
	sel.namespace = namespace
	if sel.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return sel, fmt.Errorf("labelSelector: %w", err)
	}
	if sel.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		return sel, fmt.Errorf("fieldSelector: %w", err)
	}
	return sel, nil
}

func (sel selection) has(it *item) bool {
	return it != nil && (sel.namespace == "" || sel.namespace == it.obj.GetNamespace()) &&
		(sel.labels.Empty() || sel.labels.Matches(labels.Set(it.obj.GetLabels()))) &&
		(sel.fields.Empty() || sel.fields.Matches(fieldsOf(it.obj)))
}

// fieldsOf returns the fields by which clients can select.
func fieldsOf(obj Object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}
	if pod, ok := obj.(*corev1.Pod); ok {
		set["spec.nodeName"], set["status.phase"] = pod.Spec.NodeName, string(pod.Status.Phase)
	}
	return set
}

// event returns the event of a change for a client with this selection; "" if there is none.
func (sel selection) event(c change) (string, *item) {
	switch had, has := sel.has(c.before), sel.has(c.now); {
	case had && has:
		return "MODIFIED", c.now
	case has:
		return "ADDED", c.now
	case had && c.now != nil: // the object exists, but is no longer selected
		return "DELETED", c.now
	case had:
		return "DELETED", c.before
	}
	return "", nil
}
