package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/internal/kube/model"
)

// ParsePolicy parses one NetworkPolicy or ClusterNetworkPolicy from YAML or JSON, and returns it as the result of its type. A field that the
// API does not have, or that has another type, is an error that names the field. Elements that the API has and contiv does not understand are
// in the policy's Problems.
func ParsePolicy(text []byte) (*model.Policy, *model.ClusterPolicy, error) {
	doc, err := onlyDocument(text)
	if err != nil {
		return nil, nil, err
	}
	var of metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &of); err != nil {
		return nil, nil, fmt.Errorf("the policy is not YAML: %w", err)
	}
	switch of.GroupVersionKind() {
	case networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"):
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict(doc, &p); err != nil {
			return nil, nil, fmt.Errorf("NetworkPolicy: %w", err)
		}
		if p.Name == "" {
			return nil, nil, errors.New("NetworkPolicy: metadata.name is missing")
		}
		if p.Namespace == "" {
			p.Namespace = metav1.NamespaceDefault
		}
		return ConvertPolicy(&p), nil, nil
	case schema.GroupVersion(npapi.GroupVersion).WithKind("ClusterNetworkPolicy"):
		var p npapi.ClusterNetworkPolicy
		if err := yaml.UnmarshalStrict(doc, &p); err != nil {
			return nil, nil, fmt.Errorf("ClusterNetworkPolicy: %w", err)
		}
		if p.Name == "" {
			return nil, nil, errors.New("ClusterNetworkPolicy: metadata.name is missing")
		}
		return nil, ConvertClusterPolicy(&p), nil
	}
	return nil, nil, fmt.Errorf("apiVersion %q, kind %q: use networking.k8s.io/v1 NetworkPolicy or %s ClusterNetworkPolicy",
		of.APIVersion, of.Kind, npapi.GroupVersion)
}

// onlyDocument returns the document of a file, which must contain exactly one that is not empty.
func onlyDocument(text []byte) (only []byte, err error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the policy is not YAML: %w", err)
		}
		var any map[string]any
		if yaml.Unmarshal(doc, &any) == nil && len(any) == 0 {
			continue // the document has only comments
		}
		if only != nil {
			return nil, errors.New("there are several objects; try one policy at a time")
		}
		only = doc
	}
	if only == nil {
		return nil, errors.New("there is no object")
	}
	return only, nil
}
