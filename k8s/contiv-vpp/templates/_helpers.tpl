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

{{/* What every pod of ours has: there is no other network before it. */}}
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

{{/* A pod that each node, or etcd, cannot do without. */}}
{{- define "contiv.pod" -}}
{{ include "contiv.host" . }}
priorityClassName: {{ .Values.priorityClassName }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* Who this is. */}}
{{- define "contiv.identity" -}}
- name: CONTIV_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: CONTIV_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- end -}}

{{/* Who this is and where the API server is. */}}
{{- define "contiv.env" -}}
{{ include "contiv.identity" . }}
{{- with .Values.kubernetes.server }}
- name: CONTIV_KUBERNETES_SERVER
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* A container that needs nothing of the node. */}}
{{- define "contiv.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Which nodes: (list $ "vpp"). With dataplane auto a label decides. */}}
{{- define "contiv.nodes" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}
nodeSelector: {{- toYaml $root.Values.nodeSelector | nindent 2 }}
{{- if eq $root.Values.dataplane "auto" }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: contiv.dev/dataplane, operator: {{ eq $kind "vpp" | ternary "In" "NotIn" }}, values: [vpp]}
{{- end }}
{{- end -}}

{{/* What whoever watches Kubernetes, the agents or contiv-ksr for them, may do. */}}
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
{{- end -}}

{{/* Secret with the client certificate for etcd, if there is one. */}}
{{- define "contiv.etcdSecret" -}}
{{- if eq .Values.etcd.mode "managed" }}contiv-etcd-client{{ else if eq .Values.etcd.mode "external" }}{{ .Values.etcd.external.tlsSecret }}{{ end -}}
{{- end -}}

{{/* Flags by which a program reaches etcd; the addresses of a managed one come from contiv-init. */}}
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

{{/* The Secrets for callers from elsewhere: the given ones, or those of the chart. */}}
{{- define "contiv.restTLS" -}}{{ .Values.agent.remote.tlsSecret | default "contiv-rest-tls" }}{{- end -}}
{{- define "contiv.restToken" -}}{{ .Values.agent.remote.tokenSecret | default "contiv-rest-token" }}{{- end -}}
{{- define "contiv.restReadToken" -}}{{ .Values.agent.remote.readTokenSecret | default "contiv-rest-read-token" }}{{- end -}}

{{/* A Secret with a random token: (list $ name). An upgrade takes what is in the cluster. */}}
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

{{/* The volume with the certificate of REST and its tokens, as (list $ mode tokens): (dict "file" "Secret"). Replaced Secrets are in
use with the next connection. */}}
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

{{/* The kubelet asks the agent: (list $ "/liveness"). It shows no token, and is told yes or no. */}}
{{- define "contiv.ask" -}}
{{- $root := index . 0 -}}
httpGet: {host: 127.0.0.1, port: {{ $root.Values.agent.restPort }}, path: {{ index . 1 }}{{ if $root.Values.agent.remote.enabled }}, scheme: HTTPS{{ end }}}
{{- end -}}
