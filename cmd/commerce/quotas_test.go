package main

import (
	"fmt"
	"net/http"
	"testing"
)

// statuses sends a request n times and counts the statuses of the answers.
func (i instance) statuses(t *testing.T, n int, edit func(*http.Request)) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for range n {
		request, err := http.NewRequestWithContext(t.Context(), "GET", i.URL+"/cart", nil)
		if err != nil {
			t.Fatal(err)
		}
		edit(request)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		counts[response.StatusCode]++
	}
	return counts
}

func TestQuotas_ApplyToTheProgram(t *testing.T) {
	t.Parallel()
	limited := instance{"http://" + startDemo(t, "CREATE_LIMIT=1000/s,2/h").public}
	unlimited := instance{"http://" + startDemo(t, "CREATE_LIMIT=2/h", "RATE_LIMIT=off").public}
	for n := range 4 {
		token := fmt.Sprintf("made-up-cart-token-%010d", n)
		want := http.StatusOK
		if n >= 2 {
			want = http.StatusTooManyRequests
		}
		if a, err := limited.call(token, "POST", "/cart/add", `{"product_id":1}`); err != nil || a.Status != want {
			t.Errorf("cart %d: %v, %d %s, want %d", n+1, err, a.Status, a.Body, want)
		}
		unlimited.mustCall(t, token, "POST", "/cart/add", `{"product_id":1}`)
	}
	guess := func(r *http.Request) { r.Header.Set("Authorization", "Bearer garbage") }
	const n = failuresPerMinute + 10
	refused, sent := 0, 0
	for ; refused == 0 && sent < 100*n; sent += n { // on a slow machine, many come back meanwhile
		refused = limited.statuses(t, n, guess)[http.StatusTooManyRequests]
	}
	if refused == 0 || sent == n && refused > 10 {
		t.Errorf("of %d invalid tokens %d are refused", sent, refused)
	}
	if got := unlimited.statuses(t, n, guess); got[http.StatusUnauthorized] != n {
		t.Errorf("without limits, invalid tokens get %v", got)
	}
}
