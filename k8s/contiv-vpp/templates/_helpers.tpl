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

{{/* What every pod of ours has. */}}
{{- define "contiv.pod" -}}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
priorityClassName: {{ .Values.priorityClassName }}
enableServiceLinks: false
tolerations: {{- toYaml .Values.tolerations | nindent 0 }}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Who this is and where the API server is. */}}
{{- define "contiv.env" -}}
- name: CONTIV_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: CONTIV_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
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
