package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"commerce/deploy/ephemeral"
)

// dropsFirst is a proxy that lets the service apply the first POST, and then closes the kept-alive
// connection instead of responding.
type dropsFirst struct {
	service http.Handler
	posts   atomic.Int64
}

func (d *dropsFirst) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>a storefront</title>")
	case r.Method == http.MethodPost && d.posts.Add(1) == 1:
		d.service.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		d.service.ServeHTTP(w, r)
	}
}

// docs/cart.md says which resend of a browser counts twice.
func TestResend_OfABrowserCountsTwiceOnlyWithoutAKey(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for name, tc := range map[string]struct {
		header string
		want   int
	}{
		"with only X-Timestamp":   {`"X-Timestamp": String(Math.floor(Date.now() / 1000))`, 2},
		"with an Idempotency-Key": {`"Idempotency-Key": "one"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, embeddedRedis(t))
			proxy := &dropsFirst{service: s.handler}
			web := httptest.NewServer(proxy)
			t.Cleanup(web.Close)
			ctx, _ := chromedp.NewContext(openBrowser(t), chromedp.WithNewBrowserContext())
			t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
			ctx, cancel := context.WithTimeout(ctx, patience)
			t.Cleanup(cancel)
			noError(t, chromedp.Do(ctx, chromedp.Navigate(web.URL)))
			added := must(chromedp.Run(ctx, chromedp.Evaluate[int](fmt.Sprintf(`(async () => {
				const headers = {"X-Public-Key": %q, "X-Cart-Token": "a-token-of-the-browsers-own"};
				await (await fetch("/cart/count", {headers})).text(); // leaves a kept-alive connection
				const response = await fetch("/cart/add", {
					method: "POST", headers: {...headers, "Content-Type": "application/json", %s}, body: '{"product_id": 1, "qty": 1}',
				});
				return (await response.json()).data.count;
			})()`, s.Key, tc.header), chromedp.EvalAwaitPromise)))(t)
			posts := proxy.posts.Load()
			assert(t, added == tc.want && posts == 2, "the cart has %d after %d requests, want %d after 2", added, posts, tc.want)
		})
	}
}
