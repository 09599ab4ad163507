package policy

import (
	"strings"
	"testing"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
)

// TestLateNamespace checks that a pod is closed until the agent has the object of its namespace, that an ADD waits for that object, and that
// `policy why` explains it.
func TestLateNamespace(t *testing.T) {
	b, h := restBench(t)
	web, key := podmanager.PodID{Namespace: "ns", Name: "web"}, kube.Key(kube.NamespaceKeyword, "", "ns")
	b.set(kube.NamespaceKeyword, "", "ns", nil)
	b.want("endpoint c1", "deny deny")
	var rows []whyRow
	h.get(t, whyPath+"?from=ns/web&to=10.0.1.1", 200, &rows)
	if got := rows[0].Egress.Because; !strings.HasSuffix(got, ": the agent does not have the object of namespace ns") {
		t.Error(got)
	}
	known, changed := b.p.knows(web, "1")
	if known {
		t.Error("an ADD does not wait for the namespace")
	}
	if _, err := b.p.Update(&api.KubeStateChange{Resource: kube.NamespaceKeyword, Key: key, NewValue: &kube.Namespace{Name: "ns"}}, b.dp); err != nil {
		t.Fatal(err)
	}
	b.want("endpoint c1", "allow allow [NetworkPolicy ns/p]")
	select {
	case <-changed:
	default:
		t.Error("the namespace does not wake the ADDs that wait")
	}
	if known, _ = b.p.knows(web, "1"); !known {
		t.Error("an ADD waits although the objects exist")
	}
	b.set(kube.NamespaceKeyword, "", "ns", &kube.Namespace{Name: "ns", Problems: []string{"it has 2 MB"}})
	if known, _ = b.p.knows(web, "1"); !known {
		t.Error("an ADD waits for labels that do not come")
	}
}

// TestNamespaceOfOthers checks that the first and the last object of a namespace change only the endpoints of its pods.
func TestNamespaceOfOthers(t *testing.T) {
	b := newBench(t, nil)
	for _, id := range []podmanager.PodID{{Namespace: "ns", Name: "web"}, {Namespace: "other", Name: "web"}} {
		b.set(kube.PodKeyword, id.Namespace, id.Name, &kube.Pod{Namespace: id.Namespace, Name: id.Name})
		a := &podmanager.Attachment{ID: podmanager.AttachmentID{ContainerID: "in-" + id.Namespace}, Pod: id}
		b.list = append(b.list, a)
		b.update(podmanager.NewAddPod(a))
	}
	for _, obj := range []*kube.Namespace{nil, {Name: "ns"}, {Name: "ns", Labels: map[string]string{"team": "red"}}} {
		b.p.compiler.SetNamespace("ns", obj)
		c := b.p.compiler.Flush()
		if obj.GetLabels() != nil && !c.Empty() {
			t.Errorf("labels that no policy uses change %+v", c)
		}
		if obj.GetLabels() == nil && (len(c.Endpoints) != 1 || c.Endpoints[0].ID.Namespace != "ns") {
			t.Errorf("namespace %v changes %+v", obj, c)
		}
	}
}
