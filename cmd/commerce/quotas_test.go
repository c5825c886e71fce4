package main

import (
	"fmt"
	"net/http"
	"testing"

	"commerce/deploy/assert"
)

func TestQuotas_ApplyToTheProgram(t *testing.T) {
	t.Parallel()
	limited := start(t, "demo", "CREATE_LIMIT=1000/s,2/h")
	unlimited := start(t, "demo", "CREATE_LIMIT=2/h", "RATE_LIMIT=off")
	for n := range 4 {
		token := fmt.Sprintf("made-up-cart-token-%010d", n)
		want := http.StatusOK
		if n >= 2 {
			want = http.StatusTooManyRequests
		}
		a, err := limited.call(token, "POST", "/cart/add", `{"product_id":1}`)
		assert.That(t, err == nil && a.Status == want, "cart %d: %v, %d %s, want %d", n+1, err, a.Status, a.Body, want)
		unlimited.mustCall(t, token, "POST", "/cart/add", `{"product_id":1}`)
	}
	const n = failuresPerMinute + 10
	guesses := func(i instance) map[int]int { // by the status of the answer
		counts := map[int]int{}
		for range n {
			counts[i.send(t, "GET", "/cart", "", "Authorization", "Bearer garbage").Status]++
		}
		return counts
	}
	refused, sent := 0, 0
	for ; refused == 0 && sent < 100*n; sent += n { // on a slow machine, many come back meanwhile
		refused = guesses(limited.instance)[http.StatusTooManyRequests]
	}
	assert.That(t, refused != 0 && (sent != n || refused <= 10), "of %d invalid tokens %d are refused", sent, refused)
	got := guesses(unlimited.instance)
	assert.That(t, got[http.StatusUnauthorized] == n, "without limits, invalid tokens get %v", got)
}
