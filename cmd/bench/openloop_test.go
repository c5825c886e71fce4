package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

func TestArrive_CountsFromWhenARequestIsDue(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var once sync.Once
	var one sync.Mutex // all requests wait while one stalls
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		one.Lock()
		defer one.Unlock()
		once.Do(func() { time.Sleep(stall) })
	}))
	defer target.Close()
	c, transport := loneClient(t, target.URL)

	const rate = 200
	l, err := arrive(t.Context(), transport, []*client{c}, rate, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if l.requests != rate {
		t.Errorf("sent %d requests in a second, want %d", l.requests, rate)
	}
	late := 0
	for _, took := range l.times {
		if took > stall/3 {
			late++
		}
	}
	// During the first two thirds of the stall 40 requests are due. All of them wait for more
	// than a third of it. A loop that waits for each answer would count one.
	if late < 40 {
		t.Errorf("%d requests are late after a stall of %v, want at least 40", late, stall)
	}
}

func TestArrive_StopsAtAWrongStatus(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.NotFoundHandler())
	defer target.Close()
	c, transport := loneClient(t, target.URL)
	if _, err := arrive(t.Context(), transport, []*client{c}, 100, time.Minute); err == nil {
		t.Error("a 404 is not an error")
	}
}
