package main

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// newGuest returns the headers of a guest whose cart has the given number of lines.
func (s *shop) newGuest(ctx context.Context, lines int) (http.Header, error) {
	guest := http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {crand.Text()}}
	return guest, s.fill(ctx, guest, lines)
}

// newCustomer returns the headers of a customer whose cart has the given number of lines.
func (s *shop) newCustomer(ctx context.Context, lines int) (http.Header, error) {
	token, err := s.tokens.Sign(1, "bench-"+crand.Text(), time.Hour)
	if err != nil {
		return nil, err
	}
	customer := http.Header{"X-Public-Key": {"pk_demo"}, "Authorization": {"Bearer " + token}}
	return customer, s.fill(ctx, customer, lines)
}

// newMerged returns the headers of a customer who still sends the token of a guest's
// cart that was already merged.
func (s *shop) newMerged(ctx context.Context, lines int) (http.Header, error) {
	merged, err := s.newCustomer(ctx, 0)
	if err != nil {
		return nil, err
	}
	guest, err := s.newGuest(ctx, lines)
	if err != nil {
		return nil, err
	}
	merged.Set("X-Cart-Token", guest.Get("X-Cart-Token"))
	if _, err := s.call(ctx, http.MethodGet, "/cart", merged, nil, nil); err != nil {
		return nil, err
	}
	return merged, s.confirm(ctx, merged, lines)
}

func (s *shop) fill(ctx context.Context, header http.Header, lines int) error {
	for i := range lines {
		if _, err := s.call(ctx, http.MethodPost, "/cart/add", header, addition(i), nil); err != nil {
			return err
		}
	}
	return s.confirm(ctx, header, lines)
}

// addition returns the body that adds one unit of the ith product.
func addition(i int) []byte { return fmt.Appendf(nil, `{"product_id":%d,"qty":1}`, firstProduct+i) }

// confirm fails unless the cart has the given number of lines, so that a case measures
// what its name says.
func (s *shop) confirm(ctx context.Context, header http.Header, lines int) error {
	var answer struct {
		Data struct{ Lines int }
	}
	if _, err := s.call(ctx, http.MethodGet, "/cart/count", header, nil, &answer); err != nil {
		return err
	}
	if answer.Data.Lines != lines {
		return fmt.Errorf("a cart has %d lines, not %d", answer.Data.Lines, lines)
	}
	return nil
}

// call sends one unmeasured request and decodes the response into into, unless into is
// nil. It retries 503 and 504, which a busy machine can cause.
func (s *shop) call(ctx context.Context, method, path string, header http.Header, body []byte, into any) (http.Header, error) {
	for tries := 1; ; tries++ {
		response, err := s.once(ctx, method, path, header, body)
		if err != nil {
			return nil, err
		}
		defer discard(response.Body)
		switch {
		case unavailable(response.StatusCode) && tries < 10:
			time.Sleep(100 * time.Millisecond)
		case response.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
		case into == nil:
			return response.Header, nil
		default:
			return response.Header, json.NewDecoder(response.Body).Decode(into)
		}
	}
}

func (s *shop) once(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.server.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.19.%d.1", rand.IntN(256))) // to stay below the rate limit per address
	return http.DefaultClient.Do(r)
}
