package ucp

import (
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/auth/problem"
	"commerce/cart/ucp/platform"
	"commerce/cart/wire"
)

func (a *API) rest(o operation) wire.Handler {
	return func(g *gin.Context) (wire.Answer, error) {
		c, err := a.begin(g)
		if err != nil {
			return wire.Answer{}, err
		}
		c.operation, c.id = o, g.Param("id")
		c.caller.Profile, _ = platform.ParseAgent(strings.Join(g.Request.Header.Values("UCP-Agent"), ","))
		if err = c.readREST(); err == nil {
			var r result
			if r, err = c.run(g.Request.Context()); err == nil {
				if r.tag != "" {
					g.Header("ETag", r.tag)
				}
				return c.answer(r.status, func(w *wire.Writer) { w.Value(r.body) }), nil
			}
		}
		return c.failed(restFailure(c.caller.Store.CartURL)), err
	}
}

// readREST reads the key and the body of a change. The body of a cancellation may be empty.
func (c *call) readREST() (err error) {
	if c.operation == get {
		return nil
	}
	if c.key, err = wire.IdempotencyKey(c.Request.Header); err == nil && c.key != "" {
		err = checkKey("Idempotency-Key", c.key)
	}
	if err != nil || c.operation == cancel && c.Request.ContentLength == 0 {
		return err
	}
	c.sent, c.cart, err = wire.ReadBody(c.Request)
	return err
}

// restFailure writes a protocol error over REST. continueURL is where a person can go on; "" for nowhere.
func restFailure(continueURL string) wire.Failure {
	return func(w *wire.Writer, e *problem.Error, _ int) {
		w.BeginObject()
		writeFault(w, e, continueURL)
		w.EndObject()
	}
}

func writeFault(w *wire.Writer, e *problem.Error, continueURL string) {
	w.Text("code", string(e.Code))
	w.Text("content", e.Message(w.Language))
	if continueURL != "" {
		w.Text("continue_url", continueURL)
	}
}
