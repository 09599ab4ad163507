package kube

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"contiv.dev/vswitch/internal/kube/model"
)

// want compares a message with its JSON form.
func want(t *testing.T, got proto.Message, text string) {
	t.Helper()
	expected := got.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal([]byte(text), expected); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, expected) {
		t.Errorf("got  %s\nwant %s", protojson.Format(got), protojson.Format(expected))
	}
}

func TestConvertPod(t *testing.T) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "ns", UID: "u", Labels: map[string]string{"app": "x"},
			DeletionTimestamp: &metav1.Time{Time: time.Now()},
			Annotations:       map[string]string{"kubernetes.io/ingress-bandwidth": "1M", "other": "y"},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", HostNetwork: true,
			InitContainers: []corev1.Container{
				{Ports: []corev1.ContainerPort{{Name: "init", ContainerPort: 1}}},
				{RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{Name: "side",
					ContainerPort: 2}}},
			},
			Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 8080}, {ContainerPort: 9}, {ContainerPort: 53, HostPort: 53, Protocol: "UDP",
					HostIP: "192.0.2.010"},
				{ContainerPort: 54, HostPort: 54, HostIP: "nonsense"}, {Name: "odd", Protocol: "QUIC", ContainerPort: 5},
			}}},
		},
		Status: corev1.PodStatus{PodIP: "10.1.0.7", PodIPs: []corev1.PodIP{{IP: "10.1.0.7"}, {IP: "FD00::7"}}},
	}
	want(t, convertPod(p, []string{"kubernetes.io/"}), `{"name":"a","namespace":"ns","uid":"u","labels":{"app":"x"},
		"annotations":{"kubernetes.io/ingress-bandwidth":"1M"},"ips":["10.1.0.7","fd00::7"],"nodeName":"n1","hostNetwork":true,
		"terminating":true,"ports":[{"name":"side","containerPort":2},{"name":"http","containerPort":8080},
		{"protocol":"UDP","containerPort":53,"hostPort":53,"hostIp":"192.0.2.10"}]}`)
	p.Status.Phase = corev1.PodSucceeded
	if m := convertPod(p, nil); m != nil {
		t.Errorf("a pod that has ended is %v", m)
	}
}

func TestConvertNode(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"topology.kubernetes.io/zone": "z", "other": "x"}},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{"10.1.1.0/24"}, Taints: []corev1.Taint{{Key: autoscalerTaint}}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "10.0.0.1"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"},
			{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeInternalIP, Address: "fd00::2"},
			{Type: corev1.NodeExternalIP, Address: "10.0.0.2"},
		}},
	}
	want(t, convertNode(n), `{"name":"n1","addresses":["10.0.0.2","fd00::2","203.0.113.1"],"podCidrs":["10.1.1.0/24"],
		"labels":{"other":"x","topology.kubernetes.io/zone":"z"},"leaving":true}`)
}

func TestConvertPolicy(t *testing.T) {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotIn",
				Values: []string{"b"}}}},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{},
				{
					From: []networkingv1.NetworkPolicyPeer{
						{NamespaceSelector: &metav1.LabelSelector{}},
						{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.1/8", Except: []string{"10.1.0.0/16"}}},
						{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"?"}}},
					},
					Ports: []networkingv1.NetworkPolicyPort{
						{Protocol: ptr.To(corev1.ProtocolUDP), Port: ptr.To(intstr.FromInt32(53)), EndPort: ptr.To(int32(60))},
						{Port: ptr.To(intstr.FromString("http"))}, {},
					},
				},
				{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "?"}}}},
				{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(70000))}}},
			},
		},
	}
	const common = `"name":"p","namespace":"ns","pods":{"matchExpressions":[{"key":"a","operator":"NOT_IN","values":["b"]}]},
		"ingress":true,"ingressRules":[{},{"peers":[{"namespaces":{}},{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}}],
		"ports":[{"protocol":"UDP","port":53,"endPort":60},{"name":"http"},{}],"index":1}]`
	const problems = `,"problems":["spec.ingress[1].from[2].ipBlock.except[0]: \"?\" is not a network; the block allows nothing",
		"spec.ingress[2].from[0].ipBlock.cidr: \"?\" is not a network; it allows nothing",
		"spec.ingress[3].ports[0]: 70000 to 70000 is not a range of ports in 1..65535; it allows nothing"]`
	want(t, ConvertPolicy(p), `{`+common+problems+`}`)
	p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	want(t, ConvertPolicy(p), `{`+common+`,"egress":true,"egressRules":[{}]`+problems+`}`)
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	want(t, ConvertPolicy(p), `{`+common+problems+`}`)
}

// TestPolicyNotUnderstood checks that elements that are not understood are named, and fail closed.
func TestPolicyNotUnderstood(t *testing.T) {
	unknown := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: "Like", Values: []string{"d"}}}}
	rule := func(peer networkingv1.NetworkPolicyPeer, ports ...networkingv1.NetworkPolicyPort) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{peer}, Ports: ports}}}
	}
	allPods := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
	for name, test := range map[string]struct {
		spec     networkingv1.NetworkPolicySpec
		problem  string
		rules    int
		egress   bool
		allowing string // the content of the one rule, as JSON
	}{
		"a pod selector": {networkingv1.NetworkPolicySpec{PodSelector: unknown, Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
			`spec.podSelector.matchExpressions[0]: operator "Like"`, 0, false, ""},
		"a direction": {networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Sideways"}},
			`spec.policyTypes: "Sideways"`, 0, true, ""},
		"a protocol": {rule(allPods, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.Protocol("DCCP"))}),
			`spec.ingress[0].ports[0].protocol: "DCCP"`, 0, false, ""},
		"an end of a name": {rule(allPods, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromString("http")), EndPort: ptr.To(int32(90))}),
			`spec.ingress[0].ports[0].endPort`, 0, false, ""},
		"an end of nothing": {rule(allPods, networkingv1.NetworkPolicyPort{EndPort: ptr.To(int32(90))}),
			`spec.ingress[0].ports[0].endPort`, 0, false, ""},
		"an empty name": {rule(allPods, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromString(""))}),
			`spec.ingress[0].ports[0].port`, 0, false, ""},
		"an end too large": {rule(allPods, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(80)), EndPort: ptr.To(int32(70000))}),
			`spec.ingress[0].ports[0]: 80 to 70000`, 0, false, ""},
		"a range backwards": {rule(allPods, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(80)), EndPort: ptr.To(int32(79))}),
			`spec.ingress[0].ports[0]: 80 to 79`, 0, false, ""},
		"an empty peer": {rule(networkingv1.NetworkPolicyPeer{}), `spec.ingress[0].from[0]: has neither`, 0, false, ""},
		"two kinds of peer": {rule(networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{},
			IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}), `spec.ingress[0].from[0]: has an ipBlock and a selector`, 0, false, ""},
		"a peer's selector": {rule(networkingv1.NetworkPolicyPeer{PodSelector: &unknown}),
			`spec.ingress[0].from[0].podSelector.matchExpressions[0]: operator "Like"`, 1, false,
			`{"peers":[{"pods":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c"}]}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := ConvertPolicy(&networkingv1.NetworkPolicy{Spec: test.spec})
			if len(p.Problems) != 1 || !strings.HasPrefix(p.Problems[0], test.problem) {
				t.Errorf("problems %q, want one that begins with %q", p.Problems, test.problem)
			}
			if !p.Ingress || p.Egress != test.egress || len(p.IngressRules) != test.rules {
				t.Errorf("isolates ingress %t, egress %t, and allows %v", p.Ingress, p.Egress, p.IngressRules)
			}
			if test.rules > 0 {
				want(t, p.IngressRules[0], test.allowing)
			}
			if test.spec.PodSelector.MatchLabels != nil {
				want(t, p.Pods, `{"matchLabels":{"a":"b"}}`)
			}
		})
	}
}

// TestConvertService has the cases that the comparison with kube-proxy lacks: objects that today's API server would reject.
func TestConvertService(t *testing.T) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.096.0.1", ClusterIPs: []string{"10.96.0.1", "::ffff:10.96.0.1"}, ExternalIPs: []string{"x", "1.2.3.4"},
			SessionAffinity: corev1.ServiceAffinityClientIP, LoadBalancerSourceRanges: []string{"x"},
			Ports: []corev1.ServicePort{{Port: 80}, {Port: 81, Protocol: "QUIC"}},
		},
	}
	want(t, convertService(s), `{"name":"s","namespace":"ns","clusterIps":["10.96.0.1"],"externalIps":["1.2.3.4"],
		"sessionAffinityTimeout":10800,"sourceRangesSet":true,"ports":[{"port":80}]}`)
	s.Labels = map[string]string{proxyNameLabel: "", headlessLabel: ""}
	if m := convertService(s); m.ProxyName == "" || !m.Headless || len(m.ClusterIps) != 0 {
		t.Errorf("labels: %v", m)
	}
}

func TestConvertSlice(t *testing.T) {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "s-1", Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: "s"},
			Annotations: map[string]string{triggerAnnotation: "2026-01-02T03:04:05.678Z"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To(int32(80))}, {Name: ptr.To("none")}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.1.0.1", "10.1.0.2"}, NodeName: ptr.To("n1")},
			{Addresses: []string{"fd00::1"}}, {}, {Addresses: []string{"x"}},
			{Addresses: []string{"10.1.0.3"}, NodeName: ptr.To("n1"), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
		},
	}
	in := &interner{}
	m := in.convertSlice(s)
	if m.Len() != 2 || len(m.Places) != 1 || m.At(1).Addr.String() != "10.1.0.3" || m.At(0).Place.Node != "n1" ||
		m.TriggerMs != 1767323045678 || len(m.Ports) != 1 {
		t.Errorf("slice %v", m)
	}
	if again := in.convertSlice(s); again.Places[0] != m.Places[0] {
		t.Error("equal places are two")
	}
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"FQDN":       func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN },
		"no service": func(s *discoveryv1.EndpointSlice) { s.Labels = nil },
		"foreign":    func(s *discoveryv1.EndpointSlice) { s.Labels[proxyNameLabel] = "" },
		"headless":   func(s *discoveryv1.EndpointSlice) { s.Labels[headlessLabel] = "" },
	} {
		c := s.DeepCopy()
		change(c)
		if m := in.convertSlice(c); m != nil {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// TestDamagedSlice checks that columns of different length, as in a damaged file, do no harm.
func TestDamagedSlice(t *testing.T) {
	s := &model.EndpointSlice{Addresses: make([]byte, 9), Conditions: make([]byte, 3), Place: []uint32{7, 0, 0}}
	if s.Len() != 2 {
		t.Errorf("length %d", s.Len())
	}
	if e := s.At(0); e.Place.GetNode() != "" || e.Place.HintsZone("") {
		t.Errorf("%v", e)
	}
	if (*model.EndpointSlice)(nil).Len() != 0 {
		t.Error("nil has endpoints")
	}
}

func TestParseAddr(t *testing.T) {
	for text, want := range map[string]string{
		"010.1.0.007": "10.1.0.7", "0.0.0.0": "0.0.0.0", "::ffff:1.2.3.4": "1.2.3.4", "fe80::1%eth0": "", "": "", "1.2.3": "",
		"FD00::A": "fd00::a",
	} {
		addr, ok := parseAddr(text)
		if ok != (want != "") || (ok && addr.String() != want) {
			t.Errorf("%q is %s %t, want %q", text, addr, ok, want)
		}
	}
	for text, want := range map[string]string{
		" 10.1.2.3/8 ": "10.0.0.0/8", "010.0.0.0/8": "10.0.0.0/8", "::ffff:10.0.0.0/104": "10.0.0.0/8",
		"::ffff:10.0.0.0/95": "", "10.0.0.0": "",
	} {
		p, ok := parsePrefix(text)
		if ok != (want != "") || (ok && p.String() != want) {
			t.Errorf("%q is %s %t, want %q", text, p, ok, want)
		}
	}
}

// TestServiceAge checks the data from which the older of two services, and the object of an Event, are determined.
func TestServiceAge(t *testing.T) {
	made := metav1.NewTime(time.Unix(1700000000, 0))
	s := convertService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", CreationTimestamp: made}})
	if s.GetCreated() != 1700000000 || s.GetUid() != "u" {
		t.Errorf("%v", s)
	}
	if none := convertService(&corev1.Service{}); none.GetCreated() != 0 {
		t.Errorf("%v", none)
	}
	if p := ConvertPolicy(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{UID: "p"}}); p.GetUid() != "p" {
		t.Errorf("%v", p)
	}
}
