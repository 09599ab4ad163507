{{/* Image of a component: (list $ "agent"). */}}
{{- define "contiv.image" -}}
{{- $root := index . 0 -}}{{- $i := index $root.Values.images (index . 1) -}}
{{- if $i.digest -}}{{ $i.repository }}@{{ $i.digest }}{{- else -}}{{ $i.repository }}:{{ $i.tag | default $root.Chart.AppVersion }}{{- end -}}
{{- end -}}

{{- define "contiv.labels" -}}
app.kubernetes.io/part-of: contiv
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Settings of all our pods: they use the host's network, because no other network exists before they run. */}}
{{- define "contiv.host" -}}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
enableServiceLinks: false
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Settings of the pods that each node requires, and of etcd. */}}
{{- define "contiv.pod" -}}
{{ include "contiv.host" . }}
priorityClassName: {{ .Values.priorityClassName }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* The names of the node and the pod, for a container's environment. */}}
{{- define "contiv.identity" -}}
- name: CONTIV_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: CONTIV_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end -}}

{{/* The same, with the URL of the API server. */}}
{{- define "contiv.env" -}}
{{ include "contiv.identity" . }}
{{- with .Values.kubernetes.server }}
- name: CONTIV_KUBERNETES_SERVER
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Security context of a container that does not need access to the node. */}}
{{- define "contiv.confined" -}}
{{ include "contiv.restricted" . }}
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The same without capabilities. */}}
{{- define "contiv.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* SELinux type of containers that use the node's directories and sockets, to which the type of ordinary containers has no access. Nodes
without SELinux ignore it. */}}
{{- define "contiv.selinux" -}}
seLinuxOptions: {type: spc_t}
{{- end -}}

{{/* Affinity of pods that must not share a node, in addition to the user's: (list "contiv-ksr" .Values.ksr). */}}
{{- define "contiv.apart" -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" (index . 0))) -}}
{{- $affinity := deepCopy ((index . 1).affinity | default dict) -}}
{{- $anti := $affinity.podAntiAffinity | default dict -}}
{{- $_ := set $anti "requiredDuringSchedulingIgnoredDuringExecution" (append ($anti.requiredDuringSchedulingIgnoredDuringExecution | default list) $term) -}}
{{- $_ := set $affinity "podAntiAffinity" $anti -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* Selection of nodes: (list $ "vpp" .Values.vpp). With dataplane auto a label decides, in addition to the user's affinity: every term of
required node affinity gets the label, because terms are alternatives. */}}
{{- define "contiv.nodes" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}
{{- $affinity := deepCopy ((index . 2).affinity | default dict) -}}
{{- if eq $root.Values.dataplane "auto" -}}
{{- $label := dict "key" "contiv.dev/dataplane" "operator" (eq $kind "vpp" | ternary "In" "NotIn") "values" (list "vpp") -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range ($required.nodeSelectorTerms | default (list dict)) -}}
{{- $terms = append $terms (set . "matchExpressions" (prepend (.matchExpressions | default list) $label)) -}}
{{- end -}}
{{- $_ := set $required "nodeSelectorTerms" $terms -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
nodeSelector: {{- toYaml $root.Values.nodeSelector | nindent 2 }}
{{- with $affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Permissions to watch Kubernetes, for the agents or for contiv-ksr. */}}
{{- define "contiv.watch" -}}
- apiGroups: [""]
  resources: [pods, nodes, namespaces, services]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies, servicecidrs]
  verbs: [list, watch]
- apiGroups: [policy.networking.k8s.io]
  resources: [clusternetworkpolicies]
  verbs: [list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [clusternetworkpolicies.policy.networking.k8s.io]
  verbs: [list, watch]
{{- end -}}

{{/* Secret with the client certificate for etcd, if there is one. */}}
{{- define "contiv.etcdSecret" -}}
{{- if eq .Values.etcd.mode "managed" }}contiv-etcd-client{{ else if eq .Values.etcd.mode "external" }}{{ .Values.etcd.external.tlsSecret }}{{ end -}}
{{- end -}}

{{/* Flags for the connection to etcd; contiv-init adds the addresses of a managed etcd. */}}
{{- define "contiv.etcdArgs" -}}
{{- if eq .Values.etcd.mode "external" }}
- --etcd-endpoints={{ join "," .Values.etcd.external.endpoints }}
{{- if .Values.etcd.external.insecure }}
- --etcd-insecure-transport
{{- end }}
{{- end }}
{{- if include "contiv.etcdSecret" . }}
- --etcd-ca=/etc/contiv-etcd/ca.crt
- --etcd-cert=/etc/contiv-etcd/tls.crt
- --etcd-key=/etc/contiv-etcd/tls.key
{{- end }}
{{- end -}}

{{/* The Secrets for remote callers: the configured ones, or those of the chart. */}}
{{- define "contiv.restTLS" -}}{{ .Values.agent.remote.tlsSecret | default "contiv-rest-tls" }}{{- end -}}
{{- define "contiv.restToken" -}}{{ .Values.agent.remote.tokenSecret | default "contiv-rest-token" }}{{- end -}}
{{- define "contiv.restReadToken" -}}{{ .Values.agent.remote.readTokenSecret | default "contiv-rest-read-token" }}{{- end -}}

{{/* A Secret with a random token: (list $ name). An upgrade keeps the token that is in the cluster. */}}
{{- define "contiv.tokenSecret" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "contiv.labels" $root | nindent 4 }}
type: Opaque
data:
  {{- $old := lookup "v1" "Secret" $root.Release.Namespace $name }}
  {{- if $old }}
  {{- toYaml $old.data | nindent 2 }}
  {{- else }}
  token: {{ randAlphaNum 43 | b64enc }}
  {{- end }}
{{- end -}}

{{/* The volume with the certificate of REST and its tokens, as (list $ mode tokens): (dict "file" "Secret"). The next
connection uses a replaced Secret. */}}
{{- define "contiv.restVolume" -}}
{{- $root := index . 0 -}}
name: rest
projected:
  defaultMode: {{ index . 1 }}
  sources:
  - secret:
      name: {{ include "contiv.restTLS" $root }}
      items: [{key: ca.crt, path: ca.crt}, {key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
  {{- range $file, $name := index . 2 }}
  - secret:
      name: {{ $name }}
      items: [{key: token, path: {{ $file }}}]
  {{- end }}
{{- end -}}

{{/* The kubelet's probe of the agent: (list $ "/liveness"). It has no token, and gets only yes or no. */}}
{{- define "contiv.ask" -}}
{{- $root := index . 0 -}}
httpGet: {host: 127.0.0.1, port: {{ $root.Values.agent.restPort }}, path: {{ index . 1 }}{{ if $root.Values.agent.remote.enabled }}, scheme: HTTPS{{ end }}}
{{- end -}}

{{/* An IPv4 address as a number. */}}
{{- define "contiv.ipv4" -}}
{{- $n := int64 0 -}}
{{- range splitList "." . -}}{{- $n = add (mul $n 256) (int64 .) -}}{{- end -}}
{{- $n -}}
{{- end -}}

{{/* "true" if two IPv4 networks, (list "10.1.0.0/16" "10.0.0.0/8"), have an address in common: the longer one begins in the other. */}}
{{- define "contiv.overlap" -}}
{{- $a := splitList "/" (index . 0) -}}{{- $b := splitList "/" (index . 1) -}}
{{- $size := int64 1 -}}
{{- range until (sub 32 (min (int (index $a 1)) (int (index $b 1))) | int) -}}{{- $size = mul $size 2 -}}{{- end -}}
{{- if eq (div (include "contiv.ipv4" (index $a 0) | int64) $size) (div (include "contiv.ipv4" (index $b 0) | int64) $size) -}}true{{- end -}}
{{- end -}}

{{/* Rejects IPv4 networks of contiv.conf that overlap each other, or that contain the API server or etcd, before they reach a
node. The agent and the pre-flight checks test the same, and also IPv6 and the nodes' own networks. */}}
{{- define "contiv.checkNetworks" -}}
{{- $ipam := .Values.contivConf.ipamConfig | default dict -}}
{{- $ipv4 := "^[0-9]{1,3}(\\.[0-9]{1,3}){3}/([0-9]|[12][0-9]|3[0-2])$" -}}
{{- $pods := $ipam.podSubnetCIDR | default "" -}}
{{- if and (not $ipam.contivCIDR) (or (eq $pods "") (contains "." $pods)) -}}
{{- $defaults := dict "podSubnetCIDR" "10.1.0.0/16" "serviceCIDR" "10.96.0.0/12" "vppHostSubnetCIDR" "172.30.0.0/16" "nodeInterconnectCIDR" "192.168.16.0/24" "vxlanCIDR" "192.168.30.0/24" -}}
{{- if $ipam.nodeInterconnectDHCP -}}{{- $defaults = omit $defaults "nodeInterconnectCIDR" -}}{{- end -}}
{{- if and (eq (.Values.contivConf.nodeToNodeTransport | default "vxlan") "nooverlay") (not $ipam.vxlanCIDR) -}}{{- $defaults = omit $defaults "vxlanCIDR" -}}{{- end -}}
{{- $nets := list -}}
{{- range $name, $default := $defaults -}}
{{- $text := index $ipam $name | default "" -}}
{{- $own := "" -}}
{{- range splitList "," $text -}}{{- if regexMatch $ipv4 (trim .) -}}{{- $own = trim . -}}{{- end -}}{{- end -}}
{{- if and (eq $own "") (not (and $text (contains "." $text))) -}}{{- $own = $default -}}{{- end -}}
{{- if $own -}}
{{- range $nets -}}
{{- if include "contiv.overlap" (list $own .net) -}}
{{- fail (printf "contivConf.ipamConfig: %s %s overlaps with %s %s; choose networks that have no address in common" $name $own .name .net) -}}
{{- end -}}
{{- end -}}
{{- $nets = append $nets (dict "name" $name "net" $own) -}}
{{- end -}}
{{- end -}}
{{- range $url := concat (list .Values.kubernetes.server) .Values.etcd.external.endpoints -}}
{{- $host := regexFind "^https?://[0-9]{1,3}(\\.[0-9]{1,3}){3}" $url | trimPrefix "https://" | trimPrefix "http://" -}}
{{- if $host -}}
{{- range $nets -}}
{{- if and (has .name (list "podSubnetCIDR" "vppHostSubnetCIDR" "vxlanCIDR" "serviceCIDR")) (include "contiv.overlap" (list (printf "%s/32" $host) .net)) -}}
{{- fail (printf "contivConf.ipamConfig: %s %s contains %s, which nodes must reach without contiv; choose another network" .name .net $url) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
