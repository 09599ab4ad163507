package proto

// Kinds is the set of kinds of the route, whichever of its two fields the peer filled in: newer ones send a set, older ones a single kind.
// A set wins. Kinds of a route that only describes a prefix are empty, and so are those of a kind unknown to us.
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
