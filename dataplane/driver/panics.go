package driver

import (
	"errors"
	"fmt"
	"runtime/debug"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// panicError is a panic in code that the loop called.
type panicError struct {
	doing string
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("%s: panic: %v (a defect of the agent: please report it with the stack trace from the log)",
		e.doing, e.value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// guard runs f and converts a panic to an error. doing, called only after a panic, describes what f does.
func guard(doing func() string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{doing: doing(), value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// named returns a function that returns a fixed description, for guard.
func named(doing string) func() string { return func() string { return doing } }

// describe describes a message by its type and, if available, the identity of its object.
func describe(msg any) string {
	text := fmt.Sprintf("%T", msg)
	m, ok := msg.(proto.Message)
	if !ok {
		return text
	}
	r := m.ProtoReflect()
	for _, name := range []protoreflect.Name{"id", "dst", "node", "hostname", "name"} {
		switch f := r.Descriptor().Fields().ByName(name); {
		case f == nil:
		case f.Kind() == protoreflect.MessageKind:
			return fmt.Sprintf("%s %s={%v}", text, name, r.Get(f).Message().Interface())
		default:
			return fmt.Sprintf("%s %s=%q", text, name, r.Get(f).String())
		}
	}
	return text
}
