package renderer

import "contiv.dev/vswitch/internal/kube/svcmodel"

// ServiceID is the type of ContivService.ID, for renderers outside of this module.
type ServiceID = svcmodel.ID
