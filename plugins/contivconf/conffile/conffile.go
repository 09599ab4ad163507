package conffile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
)

// maxSize is far larger than any real contiv.conf.
const maxSize = 4 << 20

// LoadFile reads the file at path and returns the configuration of this node. A missing file is an error; use contivconf.Default to run
// with defaults.
func LoadFile(path string, env contivconf.Env) (*contivconf.Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("contiv.conf: %w", err)
	}
	c, err := Load(data, env)
	if err != nil {
		return nil, fmt.Errorf("%s is not valid:\n%w", path, err)
	}
	return c, nil
}

// readFile reads path only if it is a regular file: other files may be endless, or may block the reader. It reads at most one byte more
// than the limit.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file (%s); give the path of the configuration", path, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	return data, errors.Join(err, f.Close())
}

// Load parses contiv.conf and returns the configuration of this node. The error joins all faults of syntax and of values.
func Load(data []byte, env contivconf.Env) (*contivconf.Config, error) {
	file, parseErr := parse(data)
	c, err := contivconf.New(file, env)
	if err := errors.Join(parseErr, err); err != nil {
		return nil, err
	}
	return c, nil
}

// parse parses contiv.conf without validating the values. If the syntax is invalid, the error joins all faults, and the File holds the part
// that could be read.
func parse(data []byte) (contivconf.File, error) {
	var file contivconf.File
	if len(data) > maxSize {
		return file, fmt.Errorf("the file is too large for a configuration: the limit is %d bytes", maxSize)
	}
	doc, err := document(data)
	if err != nil {
		return file, err
	}
	d := decoder{}
	if len(doc.Content) > 0 {
		d.fill(&file, doc.Content[0])
	}
	return file, errors.Join(d.errs...)
}

// document returns the only document of the text. Without this check, the text after a line "---" would be silently ignored.
func document(data []byte) (doc yaml.Node, err error) {
	stream := yaml.NewDecoder(bytes.NewReader(data))
	if err := stream.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return doc, fmt.Errorf("not YAML: %w", err)
	}
	var second yaml.Node
	switch err := stream.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc, nil
	case err != nil:
		return doc, fmt.Errorf("not YAML: %w", err)
	}
	return doc, fmt.Errorf("there is a second document (line %d); write all options into one, without \"---\" between them", second.Line)
}
