package diag

import (
	"net/http"

	"contiv.dev/vswitch/internal/rest"
)

// serveKernel: GET /contiv/v1/kernel
func (s *Service) serveKernel(w http.ResponseWriter, _ *http.Request) {
	k, err := readKernel()
	if err != nil {
		rest.WriteError(w, http.StatusInternalServerError, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, k)
}
