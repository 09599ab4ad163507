package k8s

import (
	"encoding/json"
	"reflect"
	"strings"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/controller"
)

// contivConfSchema returns the part of the chart's schema that describes contiv.conf: the options of contivconf.File, so
// that helm rejects a misspelt option before it reaches a node.
func contivConfSchema() map[string]any { return schemaOf(reflect.TypeFor[contivconf.File]()) }

// controllerConfSchema returns the schema of controller.conf. Durations are text ("30s") or numbers, as in contiv's files.
func controllerConfSchema() map[string]any {
	properties := map[string]any{}
	addOptions(properties, reflect.TypeFor[controller.Config]())
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[controller.Duration](), reflect.TypeFor[controller.Minutes]():
		return map[string]any{"type": []string{"string", "integer"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": uint64(1)<<t.Bits() - 1}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
		}
	case reflect.Struct:
		properties := map[string]any{}
		addOptions(properties, t)
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": []string{"string", "integer"}} // lengths: 24, or "24,64"
}

func addOptions(properties map[string]any, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			addOptions(properties, f.Type)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema := schemaOf(f.Type)
		schema["description"] = f.Tag.Get("doc")
		properties[name] = schema
		if also := f.Tag.Get("also"); also != "" {
			properties[also] = properties[name]
		}
	}
}

// Schema returns values.schema.json: the hand-written part (schema.base.json) with contiv.conf's options inserted.
func Schema(base []byte) ([]byte, error) {
	var schema struct {
		Schema               string         `json:"$schema"`
		Type                 string         `json:"type"`
		AdditionalProperties bool           `json:"additionalProperties"`
		Definitions          map[string]any `json:"definitions"`
		Properties           map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(base, &schema); err != nil {
		return nil, err
	}
	for name, options := range map[string]map[string]any{"contivConf": contivConfSchema(), "controllerConf": controllerConfSchema()} {
		if handWritten, ok := schema.Properties[name].(map[string]any); ok {
			options["description"] = handWritten["description"]
		}
		schema.Properties[name] = options
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	return append(text, '\n'), err
}
