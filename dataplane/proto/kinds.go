package proto

// Kinds returns the set of kinds of the route, from the field that the peer set: newer peers send a set, older ones a single kind. The set
// takes precedence. The result is empty for a route that only describes a prefix, and for a kind unknown to us.
func (r *RouteUpdate) Kinds() RouteUpdate_TypeMask {
	if mask := r.GetTypes(); mask != RouteUpdate_TYPES_NONE {
		return mask
	}
	switch r.GetType() {
	case RouteType_REMOTE_WORKLOAD:
		return RouteUpdate_TYPES_REMOTE_WORKLOAD
	case RouteType_REMOTE_HOST:
		return RouteUpdate_TYPES_REMOTE_HOST
	case RouteType_LOCAL_WORKLOAD:
		return RouteUpdate_TYPES_LOCAL_WORKLOAD
	case RouteType_LOCAL_HOST:
		return RouteUpdate_TYPES_LOCAL_HOST
	case RouteType_REMOTE_TUNNEL:
		return RouteUpdate_TYPES_REMOTE_TUNNEL
	case RouteType_LOCAL_TUNNEL:
		return RouteUpdate_TYPES_LOCAL_TUNNEL
	}
	return RouteUpdate_TYPES_NONE
}

// Is reports whether any of the kinds applies to the route.
func (r *RouteUpdate) Is(kinds RouteUpdate_TypeMask) bool { return r.Kinds()&kinds != 0 }
