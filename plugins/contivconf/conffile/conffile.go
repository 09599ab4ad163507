// Package conffile reads contiv.conf: YAML, of which JSON is a part. It is strict: an option that does not exist is an error
// that suggests the one which was probably meant, since a misspelt option that is silently ignored costs its author a day.
// What the values mean is contivconf's business.
package conffile

import (
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
)

// maxSize is far above any real contiv.conf.
const maxSize = 4 << 20

// LoadFile reads the file at path and returns the configuration of this node. An absent file is an error; to run on defaults
// use contivconf.Default.
func LoadFile(path string, env contivconf.Env) (*contivconf.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("contiv.conf: %w", err)
	}
	c, err := Load(data, env)
	if err != nil {
		return nil, fmt.Errorf("%s is not valid:\n%w", path, err)
	}
	return c, nil
}

// Load reads contiv.conf and returns the configuration of this node. The error joins all faults, of form and of meaning.
func Load(data []byte, env contivconf.Env) (*contivconf.Config, error) {
	file, parseErr := Parse(data)
	c, err := contivconf.New(file, env)
	if err := errors.Join(parseErr, err); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse reads contiv.conf without judging the values. When the form is faulty, the error joins all faults and the File has
// what could be read.
func Parse(data []byte) (contivconf.File, error) {
	var file contivconf.File
	if len(data) > maxSize {
		return file, fmt.Errorf("the file has %d bytes, the limit is %d", len(data), maxSize)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return file, fmt.Errorf("not YAML: %w", err)
	}
	d := decoder{}
	if len(doc.Content) > 0 {
		d.fill(&file, doc.Content[0])
	}
	return file, errors.Join(d.errs...)
}
