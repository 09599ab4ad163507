package renderer

import "contiv.dev/vswitch/internal/kube/svcmodel"

// ServiceID is the type of ContivService.ID: a renderer, inside or outside of this module, needs no other package for it.
type ServiceID = svcmodel.ID
