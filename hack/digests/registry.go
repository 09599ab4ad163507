package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxManifest is larger than any manifest that a registry accepts.
const maxManifest = 8 << 20

// reference is an image in a registry.
type reference struct{ host, name, tag string }

// parse accepts only full names, as container runtimes write them.
func parse(image string) (reference, error) {
	pattern := regexp.MustCompile(`^([^/\s]+[.:][^/\s]+)/([a-z0-9][a-z0-9._/-]*):([A-Za-z0-9_][A-Za-z0-9_.-]*)$`)
	m := pattern.FindStringSubmatch(image)
	if m == nil {
		return reference{}, fmt.Errorf("image %q: write it as registry/name:tag, such as docker.io/library/debian:12-slim", image)
	}
	return reference{host: m[1], name: m[2], tag: m[3]}, nil
}

// registry is a client of the distribution protocol.
type registry struct {
	client *http.Client
	scheme string
}

// digest returns the digest of the tag's index, which is the same for all architectures. It is computed from
// the registry's answer.
func (r registry) digest(ctx context.Context, ref reference) (string, error) {
	host := ref.host
	if host == "docker.io" {
		host = "registry-1.docker.io" // Docker's registry has another host name than its images
	}
	address := fmt.Sprintf("%s://%s/v2/%s/manifests/%s", r.scheme, host, ref.name, ref.tag)
	resp, err := r.get(ctx, address, "")
	if err != nil {
		return "", err
	}
	if resp.status == http.StatusUnauthorized {
		token, err := r.token(ctx, resp.header.Get("WWW-Authenticate"))
		if err != nil {
			return "", fmt.Errorf("anonymous login: %w", err)
		}
		if resp, err = r.get(ctx, address, token); err != nil {
			return "", err
		}
	}
	if resp.status != http.StatusOK {
		return "", fmt.Errorf("%s: status %d: %.200s", address, resp.status, resp.body)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(resp.body))
	if announced := resp.header.Get("Docker-Content-Digest"); announced != "" && announced != digest {
		return "", fmt.Errorf("%s: the registry announces %s, but the content has %s", address, announced, digest)
	}
	return digest, nil
}

// token requests the token that the registry's authorization server gives to anonymous clients.
func (r registry) token(ctx context.Context, challenge string) (string, error) {
	params, ok := strings.CutPrefix(challenge, "Bearer ")
	if !ok {
		return "", fmt.Errorf("the registry requires %q, not a bearer token", challenge)
	}
	query := url.Values{}
	realm := ""
	for _, m := range regexp.MustCompile(`([a-z]+)="([^"]*)"`).FindAllStringSubmatch(params, -1) {
		if m[1] == "realm" {
			realm = m[2]
		} else {
			query.Set(m[1], m[2])
		}
	}
	if !strings.HasPrefix(realm, r.scheme+"://") {
		return "", fmt.Errorf("realm %q is no %s address", realm, r.scheme)
	}
	resp, err := r.get(ctx, realm+"?"+query.Encode(), "")
	if err != nil {
		return "", err
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(resp.body, &answer); err != nil {
		return "", fmt.Errorf("%s: status %d: %w", realm, resp.status, err)
	}
	if answer.Token == "" {
		answer.Token = answer.AccessToken
	}
	if answer.Token == "" {
		return "", fmt.Errorf("%s: status %d, no token", realm, resp.status)
	}
	return answer.Token, nil
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (r registry) get(ctx context.Context, address, token string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return response{}, err
	}
	for _, kind := range []string{
		"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
		"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
	} {
		req.Header.Add("Accept", kind)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err == nil && len(body) > maxManifest {
		err = errors.New("the reply is too long")
	}
	if err != nil {
		return response{}, fmt.Errorf("%s: %w", address, err)
	}
	return response{resp.StatusCode, resp.Header, body}, nil
}
