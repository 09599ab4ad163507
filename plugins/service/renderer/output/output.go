package output

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Txn is the transaction of the event that is being handled.
type Txn interface {
	Update(note string) api.UpdateOperations
	Resync() api.ResyncOperations
}

// Writer writes values into the transaction of one event.
type Writer struct {
	put    func(key string, value proto.Message)
	remove func(key string)
	errs   []error
}

// Update returns a Writer for an event that changes what was put before.
func Update(txn Txn) *Writer {
	ops := txn.Update("")
	return &Writer{put: ops.Put, remove: ops.Delete}
}

// Resync returns a Writer for an event that puts all values again; what is not put does not exist, so Remove has no effect.
func Resync(txn Txn) *Writer {
	return &Writer{put: txn.Resync().Put, remove: func(string) {}}
}

// Put puts a value.
func (w *Writer) Put(value proto.Message) {
	if key, ok := w.key(value); ok {
		w.put(key, value)
	}
}

// Remove removes a value that was put by an earlier event.
func (w *Writer) Remove(value proto.Message) {
	if key, ok := w.key(value); ok {
		w.remove(key)
	}
}

func (w *Writer) key(value proto.Message) (string, bool) {
	key, err := nb.Key(value)
	if err != nil {
		w.Fail(fmt.Errorf("services: northbound value without a key: %w", err))
	}
	return key, err == nil
}

// Check returns the reason why a value cannot be put, or nil.
func Check(value proto.Message) error {
	_, err := nb.Key(value)
	return err
}

// Fail adds errors to those of the event; nil is no error.
func (w *Writer) Fail(errs ...error) { w.errs = append(w.errs, errs...) }

// Err returns the errors of the event, joined.
func (w *Writer) Err() error { return errors.Join(w.errs...) }
