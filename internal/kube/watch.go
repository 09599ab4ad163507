package kube

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"contiv.dev/vswitch/internal/kube/model"
)

// errAbsent ends a reflector whose resource the server does not have.
var errAbsent = errors.New("the API server does not have the resource")

// watch keeps one kind of the mirror up to date until ctx ends.
func (s *Source) watch(ctx context.Context, k *kind) error {
	logger := logr.FromSlogHandler(quiet{s.Log.Handler()})
	missing := absence{client: s.Client, kind: k}
	for {
		round, cancel := context.WithCancelCause(klog.NewContext(ctx, logger))
		lw := s.listWatch(k, func() { cancel(errAbsent) })
		r := cache.NewReflectorWithOptions(lw, k.object, &store{source: s, kind: k}, cache.ReflectorOptions{
			Logger: &logger, Name: "kube/" + k.resource, TypeDescription: k.resource, Clock: endingClock{ctx: round},
		})
		r.RunWithContext(round)
		absent := errors.Is(context.Cause(round), errAbsent)
		cancel(nil)
		if !absent || ctx.Err() != nil {
			return ctx.Err()
		}
		s.status.worked(k.resource)
		s.mirror.replace(k.keyword, nil)
		if err := missing.wait(ctx); err != nil {
			return err
		}
	}
}

// listWatch lists and watches a resource in all namespaces. It updates the status with the server's answers, and calls absent when the
// server does not have an optional resource.
func (s *Source) listWatch(k *kind, absent func()) *cache.ListWatch {
	lw := cache.NewFilteredListWatchFromClient(s.Client.groups[k.group], k.resource, metav1.NamespaceAll,
		func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = k.labelSelector, k.fieldSelector })
	check := func(err error) {
		switch {
		case err == nil:
		case k.optional && apierrors.IsNotFound(err):
			absent()
		case !apierrors.IsInvalid(err): // a server without streaming lists rejects the request; a plain list follows
			s.status.failed(k.resource, err)
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContextFunc(ctx, o)
			check(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchFuncWithContext(ctx, o)
			check(err)
			if err == nil && o.SendInitialEvents == nil {
				s.status.worked(k.resource)
			}
			return w, err
		},
	}
}

// store receives the objects of a reflector. It holds nothing itself: it passes them to the mirror.
type store struct {
	source *Source
	kind   *kind
}

// Transformer implements cache.TransformingStore, so that the reflector's own lists are small, too.
func (st *store) Transformer() cache.TransformFunc { return st.kind.transform }

// Add implements cache.ReflectorStore.
func (st *store) Add(obj any) error { return st.set(obj, false) }

// Update implements cache.ReflectorStore.
func (st *store) Update(obj any) error { return st.set(obj, false) }

// Delete implements cache.ReflectorStore.
func (st *store) Delete(obj any) error { return st.set(obj, true) }

// Resync implements cache.ReflectorStore. The mirror needs no resync.
func (st *store) Resync() error { return nil }

func (st *store) set(obj any, deleted bool) error {
	o, err := st.object(obj)
	if err != nil {
		return err
	}
	key := model.Key(st.kind.keyword, o.Namespace, o.Name)
	if deleted {
		o.msg = nil
	}
	st.source.mirror.set(st.kind.keyword, key, o.msg)
	return nil
}

// Replace implements cache.ReflectorStore. It is called after the first list, and after every list that follows a broken watch.
func (st *store) Replace(list []any, _ string) error {
	values := make(map[string]proto.Message, len(list))
	for i, item := range list {
		o, err := st.object(item)
		if err != nil {
			return err
		}
		list[i] = nil // frees the API object
		if o.msg != nil {
			values[model.Key(st.kind.keyword, o.Namespace, o.Name)] = o.msg
		}
	}
	st.source.status.worked(st.kind.resource)
	st.source.mirror.replace(st.kind.keyword, values)
	return nil
}

func (st *store) object(obj any) (*object, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	converted, err := st.kind.transform(obj)
	if err != nil {
		return nil, err
	}
	o, ok := converted.(*object)
	if !ok {
		return nil, errors.New(st.kind.resource + ": not an object of the API")
	}
	return o, nil
}

// endingClock is a clock whose pauses end when ctx does: a reflector that waits for its next attempt must not delay the stop of the
// agent.
type endingClock struct {
	clock.RealClock
	ctx context.Context
}

// After is like time.After.
func (c endingClock) After(d time.Duration) <-chan time.Time {
	ctx, cancel := context.WithTimeout(c.ctx, d)
	ch := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() {
		cancel()
		ch <- time.Now()
	})
	return ch
}

// quiet logs everything at debug level: client-go reports each attempt, status only changes.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
