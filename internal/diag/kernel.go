package diag

import "net/http"

// serveKernel: GET /contiv/v1/kernel
func (s *Service) serveKernel(w http.ResponseWriter, _ *http.Request) {
	k, err := readKernel()
	if err != nil {
		s.fail(w, http.StatusInternalServerError, err)
		return
	}
	s.answer(w, k)
}
