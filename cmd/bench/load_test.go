package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// lone returns a crowd of one client, which repeats a GET.
func lone(t *testing.T, handle http.HandlerFunc) crowd {
	t.Helper()
	target := httptest.NewServer(handle)
	t.Cleanup(target.Close)
	all := assert.Must(newCrowd(t.Context(), 1, same(target.URL, http.Header{})))(t)
	t.Cleanup(all.close)
	return all
}

func TestSend_CountsUnavailableAndStopsAtAnyOtherStatus(t *testing.T) {
	t.Parallel()
	for status, failed := range map[int]int{
		http.StatusServiceUnavailable:  1,
		http.StatusGatewayTimeout:      1,
		http.StatusInternalServerError: 0,
	} {
		for _, rate := range []float64{0, 200} {
			var asked atomic.Int64
			all := lone(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 2 {
					w.WriteHeader(status)
				}
			})
			l, err := all.send(t.Context(), pace{lasting: 100 * time.Millisecond, rate: rate})
			assert.That(t, l.failed == failed && (err == nil) == (failed == 1) && l.requests >= 1 && (failed != 0 || l.requests <= 1),
				"after a %d: %d good, %d failed, %v", status, l.requests, l.failed, err)
		}
	}
}

func TestSend_AtARateCountsFromWhenARequestIsDue(t *testing.T) {
	t.Parallel()
	const (
		stall = 300 * time.Millisecond
		rate  = 200
	)
	for _, patience := range []time.Duration{0, stall / 3} {
		var once sync.Once
		all := lone(t, func(http.ResponseWriter, *http.Request) { once.Do(func() { time.Sleep(stall) }) })
		l := assert.Must(all.send(t.Context(), pace{time.Second, rate, patience}))(t)
		late := l.failed
		for _, took := range l.times {
			if took > stall/3 {
				late++
			}
		}
		// During the first two thirds of the stall 40 requests are due. All of them wait for more
		// than a third of it. A loop that waits for each answer would count one.
		assert.That(t, l.requests+l.failed == rate && late >= 40 && (l.failed > 0) == (patience > 0),
			"patience %v: %d requests of %d, %d failed, %d late after a stall of %v", patience, l.requests, rate, l.failed, late, stall)
	}
}

// answering returns a service that answers with bodies in turn, and the queries that it got.
func answering(t *testing.T, bodies ...string) (s *shop, asked *[]string) {
	t.Helper()
	asked = new([]string)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RawQuery)
		fmt.Fprint(w, strings.ReplaceAll(bodies[(len(*asked)-1)%len(bodies)], "HOST", r.Host))
	}))
	t.Cleanup(target.Close)
	return &shop{server: &server{process: &process{url: target.URL}}, merchant: http.Header{}}, asked
}

func TestStream_CountsRowsUpToTheLastCursor(t *testing.T) {
	t.Parallel()
	row, next := `{"subscription":{"id":1}}`+"\n", `{"next":"c"}`+"\n"
	for name, c := range map[string]struct {
		format format
		body   string
		rows   int
		wrong  bool
	}{
		"NDJSON":                  {ndjson(), row + `{"deleted":{"id":3}}` + "\n" + row + next, 2, false},
		"CSV":                     {csv(), "kind,cursor,id\r\nrow,,1\r\ndeleted,,3\r\nrow,,2\r\nnext,c,\r\n", 2, false},
		"without its last cursor": {ndjson(), row + next + row, 1, true},
		"cut inside of a line":    {ndjson(), row + next + row[:9], 1, true},
	} {
		s, _ := answering(t, c.body)
		n, head, err := s.stream(t.Context(), c.format)
		assert.That(t, n == c.rows && head == "c" && (err != nil) == c.wrong, "%s: %d rows up to %q, %v", name, n, head, err)
	}
}

func TestWalk_FollowsLinks(t *testing.T) {
	t.Parallel()
	s, asked := answering(t,
		`{"data":{"data":[{"metadata":{"next_page_url":1}}],"next_page_url":"http://HOST/subscriptions?per_page=100\u0026cursor=c","path":"p"}}`,
		`{"data":{"data":[],"next_page_url":null,"path":"p"}}`)
	for rows, want := range map[int]int{150: 150, 200: 200, 99: 200, 201: 200} { // two pages have 101 to 200 rows
		*asked = nil
		n, err := s.walk(rows, 100)(t.Context())
		assert.That(t, n == want && err == nil, "a walk of a store with %d rows read %d, %v; want %d", rows, n, err, want)
		assert.Equal(t, *asked, []string{"per_page=100", "per_page=100&cursor=c"}, "pages")
	}
}
