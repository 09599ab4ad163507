package intdataplane

import (
	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/nsdo"
)

// HealthAggregator is the type of Config.HealthAggregator, and HealthReport its input, for programs outside of this module.
// NewHealthAggregator makes one; its Handler serves /liveness and /readiness.
type (
	HealthAggregator = health.HealthAggregator
	HealthReport     = health.HealthReport
)

// NewHealthAggregator returns an aggregator without reporters. Its summary is live and ready.
func NewHealthAggregator() *HealthAggregator { return health.NewHealthAggregator() }

// Namespace is the type of Options.NS: a network namespace.
type Namespace = nsdo.Namespace

// OpenNamespace opens the network namespace at a path, such as /run/netns/NAME. The caller closes it after stopping the driver.
func OpenNamespace(path string) (*Namespace, error) { return nsdo.Open(path) }
