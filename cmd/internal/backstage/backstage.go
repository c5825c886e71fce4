// Package backstage changes what other systems change in reality: the merchant's catalog and
// the billing system. The demo's page uses it to show how the API reacts. Only the demo has
// it, on its data in memory.
package backstage

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// Config configures the calls.
type Config struct {
	Store         *store.Store // whose products and subscriptions change
	Catalog       *catalog.Memory
	Subscriptions *subscriptions.Memory
	Now           func() time.Time // default time.Now
}

// Routes returns the calls, below "/playground". The server must accept them only from the
// demo's own page.
func Routes(c Config) ([]wire.Route, error) {
	decimals, known := money.Digits(c.Store.Currency)
	if !known {
		return nil, fmt.Errorf("backstage: unknown currency %q", c.Store.Currency)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	b := &backstage{Config: c, decimals: decimals}
	return []wire.Route{
		{Method: http.MethodPatch, Path: "/playground/products/:id", Handle: b.answer(b.changeProduct)},
		{Method: http.MethodPost, Path: "/playground/subscriptions", Handle: b.answer(b.bill)},
	}, nil
}

type backstage struct {
	Config
	decimals int // of the store's currency

	billing sync.Mutex // Bill reads all subscriptions before one changes
	last    sample.Event
}

// answer adds the language to what a call returns.
func (b *backstage) answer(call wire.Handler) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		answer, err := call(c)
		answer.Language = locale.Match(c.GetHeader("Accept-Language"), b.Store.Locale)
		return answer, err
	}
}

// bill lets the store's billing change one subscription.
func (b *backstage) bill(c *gin.Context) (wire.Answer, error) {
	if _, _, err := wire.ReadBody(c.Request); err != nil {
		return wire.Answer{}, err
	}
	b.billing.Lock()
	defer b.billing.Unlock()
	all, err := b.Subscriptions.Changes(c.Request.Context(), b.Store.ID, subscriptions.ChangesQuery{Limit: math.MaxInt})
	if err != nil {
		return wire.Answer{}, err
	}
	event, s := sample.Bill(all.Changed, b.last, b.Now())
	b.last = event
	if event == sample.Deleted {
		b.Subscriptions.Delete(s.StoreID, s.ID, b.Now())
	} else {
		b.Subscriptions.Put(s)
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Number("id", s.ID)
		w.Text("what", string(event))
		w.EndObject()
	}}, nil
}
