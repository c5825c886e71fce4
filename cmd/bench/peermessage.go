package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// message is a request to a peer.
type message struct {
	path   string
	header http.Header
	body   []byte // as JSON; a POST if there is one, otherwise a GET
}

// request returns a new request to the peer at a URL.
func (m message) request(url string) (*http.Request, error) {
	if m.body == nil {
		return newRequest(http.MethodGet, url+m.path, m.header)
	}
	r, err := newRequest(http.MethodPost, url+m.path, m.header)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	setBody(r, m.body)
	return r, nil
}

// send sends the message without measuring it.
func (m message) send(ctx context.Context, url string) (http.Header, []byte, error) {
	r, err := m.request(url)
	if err != nil {
		return nil, nil, err
	}
	response, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err = cmp.Or(err, response.Body.Close()); err != nil {
		return nil, nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s %s: %s: %s", r.Method, r.URL, response.Status, answer[:min(len(answer), 300)])
	}
	for _, refusal := range []string{`"errors":[{`, `"errorCode":`} { // of GraphQL, with 200
		if bytes.Contains(answer, []byte(refusal)) {
			return nil, nil, errors.New(string(answer[:min(len(answer), 300)]))
		}
	}
	return response.Header, answer, nil
}
