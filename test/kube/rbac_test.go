package kube

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	manifestFile   = "../../k8s/contiv-vpp.yaml"
	agentAccount   = "contiv-agent"
	agentNamespace = "kube-system"
	agentUser      = "system:serviceaccount:" + agentNamespace + ":" + agentAccount
)

// auditPolicy makes the API server log the agent's requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["` + agentUser + `"]}
- {level: None}
`

// auditFiles returns the paths of the policy and the log.
func auditFiles() (policy, log string) {
	return filepath.Join(os.TempDir(), "kubelab-audit.yaml"), filepath.Join(os.TempDir(), "kubelab-audit.log")
}

// auditArgs returns the API server's options for the audit log.
func auditArgs() (string, error) {
	policy, log := auditFiles()
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return "--audit-policy-file=" + policy + " --audit-log-path=" + log, os.WriteFile(policy, []byte(auditPolicy), 0o644)
}

// permissions returns the RBAC objects of the published manifest.
func permissions() (string, error) {
	data, err := os.ReadFile(manifestFile)
	if err != nil {
		return "", err
	}
	kind := regexp.MustCompile(`(?m)^kind: (ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy\w*)$`)
	name := regexp.MustCompile(`(?m)^  name: ` + agentAccount)
	var out []string
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		if kind.MatchString(doc) && name.MatchString(doc) {
			out = append(out, doc)
		}
	}
	if len(out) == 0 {
		return "", fmt.Errorf("%s has no account %s", manifestFile, agentAccount)
	}
	return strings.Join(out, "\n---\n"), nil
}

// agentToken returns a token of the agent's service account, which has the rights that the manifest gives it and no others.
func (w *world) agentToken() string {
	w.t.Helper()
	rules, err := permissions()
	w.must(err)
	w.apply(rules)
	var review struct{ Status struct{ Token string } }
	w.must(w.do(w.ctx, http.MethodPost, "/api/v1/namespaces/"+agentNamespace+"/serviceaccounts/"+agentAccount+"/token",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{"expirationSeconds": 7200}}, &review))
	return review.Status.Token
}

// agentCredential returns the agent's kubeconfig.
func (w *world) agentCredential() []byte {
	w.t.Helper()
	ca, err := os.ReadFile(filepath.Join(runDir, "pki", "ca.crt"))
	w.must(err)
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "%s", certificate-authority-data: %s}}]
users: [{name: agent, user: {token: %s}}]
contexts: [{name: lab, context: {cluster: lab, user: agent}}]
current-context: lab
`, apiServer, base64.StdEncoding.EncodeToString(ca), w.agentToken())
}

// testRBAC checks that the agent's account has the rights that the agent uses, and none that would help an attacker.
func testRBAC(w *world) {
	agent, err := newAPI(filepath.Join(runDir, "pki"), "", w.agentToken())
	w.must(err)
	for _, path := range []string{"/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/services",
		"/apis/discovery.k8s.io/v1/endpointslices", "/apis/networking.k8s.io/v1/networkpolicies",
		"/apis/networking.k8s.io/v1/servicecidrs"} {
		w.must(agent.do(w.ctx, http.MethodGet, path+"?limit=1", nil, nil))
	}
	for _, deny := range []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, "/api/v1/secrets", nil}, {http.MethodGet, "/api/v1/namespaces/kube-system/secrets", nil},
		{http.MethodGet, "/api/v1/configmaps", nil}, {http.MethodGet, "/api/v1/namespaces/kube-system/serviceaccounts", nil},
		{http.MethodPost, podsPath, pausePod("stolen", "stolen")}, {http.MethodDelete, podsPath, nil},
		{http.MethodPost, podsPath + "/x/exec?command=sh", nil},
		{http.MethodPatch, "/api/v1/nodes/node1", object{"spec": object{"unschedulable": true}}},
		{http.MethodDelete, "/api/v1/nodes/node1", nil},
		{http.MethodPatch, "/api/v1/namespaces/default/services/kubernetes", object{"metadata": object{"labels": object{"x": "y"}}}},
		{http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			object{"roleRef": object{"kind": "ClusterRole", "name": "cluster-admin"}}},
		{http.MethodPost, "/api/v1/namespaces/" + agentNamespace + "/serviceaccounts/" + agentAccount + "/token", object{}},
		// The agent may change only its own node, and a token that is not bound to a pod has none.
		{http.MethodPatch, "/api/v1/nodes/node1/status", object{"status": object{"phase": "x"}}},
	} {
		err := agent.do(w.ctx, deny.method, deny.path, deny.body, nil)
		var status *statusError
		if !errors.As(err, &status) || status.code != http.StatusForbidden {
			w.t.Errorf("%s %s with the agent's token: %v; it must be forbidden", deny.method, deny.path, err)
		}
	}
}

// audited is a request in the API server's audit log.
type audited struct {
	Verb      string
	ObjectRef struct{ APIGroup, Resource, Subresource string }
	UserAgent string
	Status    struct{ Code int } `json:"responseStatus"`
}

func (a audited) right() string {
	resource := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		resource += "/" + a.ObjectRef.Subresource
	}
	return strings.TrimPrefix(a.ObjectRef.APIGroup+"/"+resource, "/") + " " + a.Verb
}

// testRightsUsed checks that the agent uses every right that it has, and that no right is missing.
func testRightsUsed(w *world) {
	_, logFile := auditFiles()
	data, err := os.ReadFile(logFile)
	w.must(err)
	used, refused := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(string(data))); lines.Scan(); {
		var a audited
		w.must(json.Unmarshal(lines.Bytes(), &a))
		if !strings.HasPrefix(a.UserAgent, "contiv") {
			continue // a request of the test itself
		}
		used[a.right()] = true
		if a.Status.Code == http.StatusForbidden {
			refused[a.right()] = true
		}
	}
	for right := range refused {
		w.t.Errorf("the agent has not the right that it asked for: %s", right)
	}
	var idle []string
	for _, right := range w.rights() {
		if !used[right] && !rare(right) {
			idle = append(idle, right)
		}
	}
	if len(idle) > 0 {
		w.t.Errorf("rights that the agent does not use: %v", idle)
	}
	w.t.Logf("%d rights are used", len(used))
}

// rare reports whether a right is not used on every cluster: client-go lists only if the API server cannot stream lists, Events are
// written only for faults, and not every cluster has a ClusterNetworkPolicy.
func rare(right string) bool {
	return strings.HasSuffix(right, " list") || strings.HasPrefix(right, "events ") || strings.Contains(right, "/clusternetworkpolicies/status ")
}

// rights returns the rights of the agent's roles, as "group/resource verb".
func (w *world) rights() []string {
	w.t.Helper()
	var all []string
	for _, kind := range []string{"clusterroles", "roles"} {
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Rules    []struct{ APIGroups, Resources, Verbs []string }
			}
		}
		w.must(w.do(w.ctx, http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/"+kind, nil, &list))
		for _, role := range list.Items {
			if !strings.HasPrefix(role.Metadata.Name, agentAccount) {
				continue
			}
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							all = append(all, strings.TrimPrefix(group+"/"+resource, "/")+" "+verb)
						}
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// testManifests checks that the API server accepts all published manifests, without unknown fields.
func testManifests(w *world) {
	start := time.Now()
	out := w.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", manifestFile)
	w.t.Logf("%d objects accepted in %s", strings.Count(out, "(server dry run)"), since(start))
}
