package windataplane

import "contiv.dev/vswitch/internal/health"

// HealthAggregator is the type of Config.HealthAggregator, for programs outside of this module.
type HealthAggregator = health.HealthAggregator

// NewHealthAggregator returns an aggregator without reporters, whose summary is live and ready.
func NewHealthAggregator() *HealthAggregator { return health.NewHealthAggregator() }
